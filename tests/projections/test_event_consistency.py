"""Does each event follow from what it cites?"""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.imports import LedgerMerged
from ledger.events.judging import Verdict, VerdictReceived, repeat_key
from ledger.events.registration import PromptRegistered
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from projections.event_consistency import ConsistencyCheck
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    completed,
    item,
    observed,
    plan,
    registrations,
    unscorable,
)
from tests.support.builders.events import (
    STREAM,
    entrant,
    key,
    known,
    opened,
    prompt,
    recorded,
    responses,
    verdict,
)
from tests.support.builders.money import put
from tests.support.builders.scores import put_answer, score, scored_plan, shared
from tests.support.builders.worlds import answered, failure, matches_of, reconciled
from tests.support.strategies.tournaments import tournament_histories

PAID_TWICE = "the same result was recorded and paid for before"
PLANNED_EVALUATION = plan(n_items=2)
SEEN = observed(PLANNED_EVALUATION, [answer()])
OTHER = StreamId("other")


def faults(events: Sequence[Recorded]) -> list[str]:
    """Return what is wrong with events, in order."""
    meaning = ConsistencyCheck()
    return [
        fault
        for each in events
        for fault in meaning.faults_of(each.event, each.stream, is_redacted=each.redacted)
    ]


def faults_of(*events: Event, streams: Sequence[StreamId] = ()) -> list[str]:
    """Return what does not follow, in events of one tournament but for those that are given."""
    of = [*streams, *[STREAM] * (len(events) - len(streams))]
    return faults(
        [
            Recorded(n, stream, n, 0, bytes(32), event)
            for n, (event, stream) in enumerate(zip(events, of, strict=True), 1)
        ]
    )


REGISTERED = registrations(plan(n_items=4))


def evaluation_faults(events: Sequence[Recorded]) -> list[str]:
    """Return what is wrong with events whose items and entrants are registered."""
    return faults([*recorded(REGISTERED), *events])


@pytest.mark.parametrize("is_redacted", [False, True])
def test_an_item_under_another_name_is_a_fault_unless_its_texts_are_gone(
    *, is_redacted: bool
) -> None:
    """Who reads it would take it for what was asked."""
    [event] = recorded([replace(item(0), item=key("?"))])

    found = evaluation_faults([event._replace(redacted=is_redacted)])

    assert found == ([] if is_redacted else ["its digest does not match what it registers"])


def test_an_observation_counts_where_it_was_given_up_before() -> None:
    """Later there was memory enough."""
    small = plan(n_items=1)

    assert not faults_of(
        *REGISTERED, small, unscorable(small), *observed(small, [answer()]), completed(small, 1)
    )


def test_more_tries_at_an_item_may_be_planned_later() -> None:
    """The same run goes on: both plans hold."""
    more = replace(PLANNED_EVALUATION, number=2, n_samples=2)
    fewer = replace(PLANNED_EVALUATION, number=3)
    again = replace(SEEN[0], sample=1)

    assert not faults_of(*REGISTERED, PLANNED_EVALUATION, *SEEN, more, fewer, again)


def test_what_another_tournament_observed_counts() -> None:
    """A run is what its key says: what one tournament has observed, none owes."""
    ours = recorded([PLANNED_EVALUATION, *observed(PLANNED_EVALUATION, [answer(), answer()])])
    theirs = recorded([PLANNED_EVALUATION, completed(PLANNED_EVALUATION, 2)], stream=OTHER)

    assert not evaluation_faults([*ours, *theirs])


def test_a_merged_tournament_is_held_to_what_it_saw() -> None:
    """It gave up what we observed; what it claims of itself was true there, and is no fault."""
    small = plan(n_items=1)
    ours = recorded([small, *observed(small, [answer()]), completed(small, 1)])
    theirs = recorded([small, unscorable(small), completed(small, 0, 1)], stream=OTHER)

    assert not evaluation_faults([*ours, *theirs])
    assert not evaluation_faults([*theirs, *ours])


GAVE_UP: list[Event] = [
    PLANNED_EVALUATION,
    unscorable(PLANNED_EVALUATION),
    unscorable(PLANNED_EVALUATION, 1),
    completed(PLANNED_EVALUATION, 0, 2),
]
MORE = plan(n_items=3, number=2)
THIRD = observed(MORE, [answer()], start=2)


NEVER = "samples observed: 1 to 3, unscorable: 0 to 2, neither: 0; the event says {} and {}"


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("claimed", "can_be"),
    [
        *((each, True) for each in ((3, 0), (2, 1), (1, 2))),
        *((each, False) for each in ((0, 3), (4, 0), (3, 1), (1, 1))),
    ],
)
def test_a_tournament_that_goes_on_after_a_merge_may_count_what_others_observed(
    claimed: tuple[int, int], *, can_be: bool
) -> None:
    """It gave two up, and now knows of their observations; it never knew less, nor of others."""
    ours = recorded(GAVE_UP)
    theirs = recorded(
        [PLANNED_EVALUATION, *observed(PLANNED_EVALUATION, [answer(), answer()])], stream=OTHER
    )
    on = recorded([MORE, *THIRD, completed(MORE, *claimed)])

    found = evaluation_faults([*ours, *theirs, *on])

    assert found == ([] if can_be else [NEVER.format(*claimed)])


def test_what_a_third_tournament_gave_up_counts_as_given_up() -> None:
    """Two ledgers: in theirs nobody had observed the sample, and in ours somebody has."""
    small = plan(n_items=1)
    ours = recorded([small, *observed(small, [answer()]), completed(small, 1)])
    third = recorded([small, unscorable(small)], stream=StreamId("third"))
    theirs = recorded([small, completed(small, 0, 1)], stream=OTHER)

    assert not evaluation_faults([*ours, *third, *theirs])


MATCH = matches_of(known(*answered(opened())))[0]
FORWARD, SWAPPED = MATCH.forward.query_key, MATCH.swapped.query_key
ASKED = put(MATCH, MATCH.forward), put(MATCH, MATCH.swapped)
SAID: tuple[VerdictReceived, ...] = (verdict(FORWARD, "A"), verdict(SWAPPED, "B"))
TRUE: tuple[Event, ...] = (*ASKED, *SAID, reconciled(MATCH, "a"))
RESPONSE = next(each for each in answered(opened()) if isinstance(each, ResponseGenerated))
PROMPT = prompt()
PLANNED_BATCH = planned_batch(FORWARD, SWAPPED)
NO_BATCH = f"its batch {PLANNED_BATCH.batch_key[:12]} was not planned before it"
BATCH, BATCHED = PLANNED_BATCH.batch_key, sent(PLANNED_BATCH.batch_key)


PUT, SCORE = put_answer(key("q"), scored_plan(), 0), score(key("q"))
SHARED = shared(key("q"), scored_plan(), 1)
AGAIN = replace(ASKED[0], query_key=repeat_key(FORWARD), repeats=FORWARD)
OF_STRANGERS = replace(plan("amy", n_items=2), items=(key("?"), *plan(n_items=1).items))
CHOSEN = plan(kind="comparison", n_items=1)
PLANNED: tuple[Event, ...] = (*REGISTERED, PLANNED_EVALUATION)
UNPLANNED = f"its run {PLANNED_EVALUATION.run_key[:12]} was not planned before it"
COUNTS = "samples observed: 1, unscorable: {}, neither: {}; the event says {} and {}"


def unasked(query: Digest) -> str:
    """Return what is said of an answer to a query that nobody sent."""
    return f"it answers query {query[:12]}, which was not submitted before it"


class Case(NamedTuple):
    """A history whose last event does not follow, and its twin in which it does."""

    unsound: tuple[Event, ...]
    why: str
    sound: tuple[Event, ...]


CASES = {
    "verdict on a query never submitted": Case(
        (ASKED[0], SAID[1]), unasked(SWAPPED), (ASKED[1], SAID[1])
    ),
    "verdict on a query submitted later": Case((SAID[0],), unasked(FORWARD), (ASKED[0], SAID[0])),
    "verdict that its reply does not say": Case(
        (ASKED[0], replace(SAID[0], verdict="TIE")),
        "its reply says A, the event says TIE",
        (ASKED[0], replace(SAID[0], verdict="TIE", reply="VERDICT: TIE")),
    ),
    "verdict of a reply that says none": Case(
        (ASKED[0], replace(SAID[0], reply="Both are fine.")),
        "its reply says None, the event says A",
        (ASKED[0], replace(SAID[0], reply="Both are fine.\n**Verdict:** A")),
    ),
    "unknown parser": Case(
        (ASKED[0], replace(SAID[0], parser="first-line@1")),
        "unknown parser 'first-line@1'; a newer tourney may know it",
        (ASKED[0], SAID[0]),
    ),
    "failure of a query never submitted": Case(
        (ASKED[0], failure(MATCH.swapped)), unasked(SWAPPED), (ASKED[1], failure(MATCH.swapped))
    ),
    "outcome before its second verdict": Case(
        (*ASKED, SAID[0], reconciled(MATCH, "a")),
        f"its swapped query {SWAPPED[:12]} had no verdict before it",
        TRUE,
    ),
    "outcome before its first verdict": Case(
        (*ASKED, SAID[1], reconciled(MATCH, "a")),
        f"its forward query {FORWARD[:12]} had no verdict before it",
        TRUE,
    ),
    "outcome that its policy does not make": Case(
        (*ASKED, *SAID, reconciled(MATCH, "b")),
        "swap-consistent gives 'a' for verdicts A and B, the event says 'b'",
        TRUE,
    ),
    "unknown policy": Case(
        (*ASKED, *SAID, replace(reconciled(MATCH, "a"), policy="best-of-three")),
        "unknown policy 'best-of-three'; a newer tourney may know it",
        TRUE,
    ),
    "tie of two responses that differ": Case(
        (*ASKED, replace(reconciled(MATCH, "tie"), basis="identical")),
        "it says that the responses are identical, but its two queries differ",
        (replace(reconciled(MATCH, "tie"), basis="identical", swapped=FORWARD),),
    ),
    "winner among identical responses": Case(
        (replace(reconciled(MATCH, "a"), basis="identical", swapped=FORWARD),),
        "it says 'a' for identical responses, which always tie",
        (replace(reconciled(MATCH, "tie"), basis="identical", swapped=FORWARD),),
    ),
    "batch that nobody planned": Case((BATCHED,), NO_BATCH, (PLANNED_BATCH, BATCHED)),
    "end of a batch that nobody planned": Case(
        (ended(BATCH),), NO_BATCH, (PLANNED_BATCH, BATCHED, ended(BATCH))
    ),
    "failure of a batch that nobody planned": Case(
        (not_created(BATCH),), NO_BATCH, (PLANNED_BATCH, not_created(BATCH))
    ),
    "query of a batch that was not submitted": Case(
        (PLANNED_BATCH, replace(ASKED[0], batch_key=BATCH)),
        f"its batch {BATCH[:12]} was not submitted before it",
        (PLANNED_BATCH, BATCHED, replace(ASKED[0], batch_key=BATCH)),
    ),
    "registration under another's digest": Case(
        (PromptRegistered(prompt=PROMPT, digest=prompt("p2").content_digest),),
        "its digest does not match what it registers",
        (PromptRegistered(prompt=PROMPT, digest=PROMPT.content_digest),),
    ),
    "score that its reply does not say": Case(
        (PUT, replace(SCORE, score=8.0)), "its reply says 7.0, the event says 8.0", (PUT, SCORE)
    ),
    "score that is not on the scale": Case(
        (PUT, replace(SCORE, reply="SCORE: 70", score=70.0)),
        "its reply says None, the event says 70.0",
        (PUT, SCORE),
    ),
    "score by an unknown parser": Case(
        (PUT, replace(SCORE, parser="palm@1")),
        "unknown parser 'palm@1'; a newer tourney may know it",
        (PUT, SCORE),
    ),
    "score of a query never submitted": Case((SCORE,), unasked(key("q")), (PUT, SCORE)),
    "shared score of a query never submitted": Case(
        (SHARED,), unasked(key("q")), (PUT, SCORE, SHARED)
    ),
    "score paid for twice": Case((PUT, SCORE, SCORE), PAID_TWICE, (PUT, SCORE)),
    "verdict paid for twice": Case(
        (*ASKED, *SAID, replace(SAID[0], reply="Once more.\nVERDICT: A")), PAID_TWICE, TRUE
    ),
    "response made twice": Case((RESPONSE, RESPONSE), PAID_TWICE, (RESPONSE,)),
    "repeat of a query never submitted": Case(
        (AGAIN,),
        f"it repeats query {FORWARD[:12]}, which was not submitted before it",
        (ASKED[0], AGAIN, SAID[0], verdict(AGAIN.query_key, "B")),
    ),
    "repeat under another key": Case(
        (ASKED[0], replace(AGAIN, query_key=key("?"))),
        f"its key is not that of a repeat of query {FORWARD[:12]}",
        (ASKED[0], AGAIN),
    ),
    "observation of a run never planned": Case(
        (*REGISTERED, SEEN[0]), UNPLANNED, (*PLANNED, SEEN[0])
    ),
    "sample given up of a run never planned": Case(
        (*REGISTERED, unscorable(PLANNED_EVALUATION)),
        UNPLANNED,
        (*PLANNED, unscorable(PLANNED_EVALUATION)),
    ),
    "end of a run never planned": Case(
        (*REGISTERED, completed(PLANNED_EVALUATION, 2)),
        "no plan 1 of base on recall was recorded before it",
        (*PLANNED, *SEEN, unscorable(PLANNED_EVALUATION, 1), completed(PLANNED_EVALUATION, 1, 1)),
    ),
    "item that is not of the plan": Case(
        (*PLANNED, replace(SEEN[0], item=key("?"))),
        f"sample 0 of item {key('?')[:12]} is not in its run's plan",
        (*PLANNED, SEEN[0]),
    ),
    "try that is not of the plan": Case(
        (*PLANNED, replace(SEEN[0], sample=1)),
        f"sample 1 of item {SEEN[0].item[:12]} is not in its run's plan",
        (*PLANNED, SEEN[0]),
    ),
    "observation of another kind": Case(
        (*PLANNED, replace(SEEN[0], observation=choices())),
        "its observation does not fit its run, a rollout",
        (*PLANNED, SEEN[0]),
    ),
    "right choice that is not there": Case(
        (*REGISTERED, CHOSEN, *observed(CHOSEN, [choices(choice(-1.0), correct=1)])),
        "its correct choice is number 1 of 1, counted from 0",
        (*REGISTERED, CHOSEN, *observed(CHOSEN, [choices(choice(-1.0))])),
    ),
    "more observed than was": Case(
        (*PLANNED, *SEEN, completed(PLANNED_EVALUATION, 2)),
        COUNTS.format(0, 1, 2, 0),
        (*PLANNED, *observed(PLANNED_EVALUATION, [answer()] * 2), completed(PLANNED_EVALUATION, 2)),
    ),
    "end before the last sample": Case(
        (*PLANNED, *SEEN, completed(PLANNED_EVALUATION, 1)),
        COUNTS.format(0, 1, 1, 0),
        (*PLANNED, *SEEN, unscorable(PLANNED_EVALUATION, 1), completed(PLANNED_EVALUATION, 1, 1)),
    ),
    "observed what was given up": Case(
        (*PLANNED, *SEEN, unscorable(PLANNED_EVALUATION, 1), completed(PLANNED_EVALUATION, 2)),
        COUNTS.format(1, 0, 2, 0),
        (*PLANNED, *SEEN, unscorable(PLANNED_EVALUATION, 1), completed(PLANNED_EVALUATION, 1, 1)),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_event_that_does_not_follow_is_told_why_and_its_sound_twin_has_no_fault(
    case: Case,
) -> None:
    """The chain proves only that a falsehood is the one that was recorded."""
    assert faults_of(*case.unsound) == [case.why]
    assert faults_of(*case.sound) == []
    assert not faults_of(*case.unsound[:-1])


def test_a_plan_of_what_was_not_registered_is_told_of_both() -> None:
    """Nobody could say what was asked, nor of which weights."""
    assert faults_of(*REGISTERED, OF_STRANGERS) == [
        "its entrant amy was not registered before it",
        f"1 of its 2 items were not registered before it, as {key('?')[:12]}",
    ]


def test_an_outcome_without_any_verdict_is_told_of_both() -> None:
    """Who repairs a ledger wants all that is wrong; the policy cannot be asked."""
    found = faults_of(reconciled(MATCH, "a"))

    assert [why.split()[1] for why in found] == ["forward", "swapped"]


def test_equal_texts_put_one_query_for_both_orders() -> None:
    """It is paid for once, so it stands on the ledger under one order only."""
    opening = opened()
    texts = {("base", "p1"): "aspirin", ("tuned", "p1"): "aspirin"}
    (match,) = matches_of(known(*opening, *responses(known(*opening), texts)))
    asked = put(match, match.forward)
    said = verdict(match.forward.query_key, "A")

    assert match.forward.query_key == match.swapped.query_key
    assert faults_of(asked, said, reconciled(match, "inconsistent")) == []


def test_verdicts_of_another_tournament_may_be_cited() -> None:
    """Content names a query: a second tournament reconciles what the first one paid for."""
    of_theirs = [replace(each, entrant_a=key("x"), entrant_b=key("y")) for each in ASKED]

    assert faults_of(*of_theirs, *SAID, reconciled(MATCH, "a")) == []


def test_entrants_that_exchange_their_labels_are_asked_nothing_again() -> None:
    """Renaming is free: each query was answered already, in the other order of the same pair."""
    twins = opened(
        entrants=[
            entrant("base", weights_digest=key("tuned")),
            entrant("tuned", weights_digest=key("base")),
        ]
    )
    answers = responses(known(*opened()))
    (renamed,) = matches_of(known(*twins, *answers))

    assert (renamed.forward.query_key, renamed.swapped.query_key) == (SWAPPED, FORWARD)
    assert faults_of(*TRUE, reconciled(renamed, "b")) == []


def test_events_that_cite_nothing_have_no_fault() -> None:
    """Openings, responses and merges stand for themselves."""
    merged = LedgerMerged(head=key("head"), n_events=3, n_taken=1)

    assert faults_of(*answered(opened()), merged) == []


@given(history=tournament_histories())
def test_outcomes_of_any_history_follow_from_their_verdicts(history: list[Event]) -> None:
    """However a tournament went: what our policy makes is never found fault with."""
    not_submitted = "was not submitted before it"

    assert [why for why in faults_of(*history) if not why.endswith(not_submitted)] == []


@pytest.mark.parametrize(
    ("reply", "read_as"), [("VERDICT: A\nVERDICT: B", "B"), ("VERDICT: [[A]]", None)]
)
def test_what_an_earlier_rule_read_and_what_it_did_not_has_no_fault(
    reply: str, read_as: Verdict | None
) -> None:
    """Ledgers of yesterday are right by the rule that they name, whatever is read today."""
    answer: Event = replace(failure(MATCH.forward), reply=reply, parser="final-line@1")
    if read_as is not None:
        answer = replace(SAID[0], verdict=read_as, reply=reply, parser="final-line@1")

    assert faults_of(*ASKED, answer) == []


def test_tournaments_that_were_merged_may_have_paid_for_the_same() -> None:
    """Their ledgers knew nothing of each other."""
    assert faults_of(*ASKED, *SAID, *SAID, streams=[STREAM] * 4 + [OTHER] * 2) == []
    assert faults_of(PUT, SCORE, PUT, SCORE, streams=[STREAM] * 2 + [OTHER] * 2) == []
    assert faults_of(RESPONSE, RESPONSE, streams=[STREAM, OTHER]) == []


OTHERWISE = (verdict(FORWARD, "B"), verdict(SWAPPED, "A"))


def test_an_outcome_follows_from_the_verdicts_of_its_own_tournament() -> None:
    """Merged during a run, theirs may come between our verdicts and the outcome made of them."""
    events: tuple[Event, ...] = (*ASKED, *SAID, *OTHERWISE, reconciled(MATCH, "b"))
    streams = [STREAM] * 4 + [OTHER] * 3

    sound = faults_of(*events, reconciled(MATCH, "a"), streams=streams)
    unsound = faults_of(*events, reconciled(MATCH, "b"), streams=streams)

    assert sound == []
    made = "swap-consistent gives 'a' for verdicts A and B, the event says 'b'"
    assert unsound == [made]


def test_an_outcome_may_follow_from_verdicts_of_any_other_tournament() -> None:
    """Whoever asks nothing that others asked does not know yet whom else a merge will bring."""
    verdicts: tuple[Event, ...] = (*ASKED, *SAID, *OTHERWISE)
    streams = [StreamId("third")] * 4 + [OTHER] * 2

    for outcome in ("a", "b"):
        assert faults_of(*verdicts, reconciled(MATCH, outcome), streams=streams) == []
    [why] = faults_of(*verdicts, reconciled(MATCH, "tie"), streams=streams)
    assert why.startswith("swap-consistent gives 'a' for verdicts A and B or ")


def test_a_redacted_score_is_not_read_again() -> None:
    """What its reply said is gone."""
    asked, given = recorded([PUT, replace(SCORE, reply="[redacted]")])

    assert not faults([asked, given._replace(redacted=True)])
