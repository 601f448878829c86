"""Does each event follow from what it cites?"""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.imports import LedgerMerged
from ledger.events.judging import JudgeQuerySubmitted, Order, VerdictReceived
from ledger.events.registration import PromptRegistered
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import StreamId
from ledger.recorded import Recorded
from projections.consistency import ConsistencyCheck
from projections.tournament.matches import Match
from projections.verdicts.queries import JudgeQuery
from tests.batches import ended, not_created, planned, sent
from tests.builders import STREAM, entrant, judge, key, known, opened, prompt, responses, verdict
from tests.projections.strategies import histories
from tests.projections.worlds import answered, failure, matches_of, reconciled


def submitted(match: Match, question: JudgeQuery, order: Order) -> JudgeQuerySubmitted:
    """Return the event that puts a match to the judge in one order."""
    pairing = match.pairing
    return JudgeQuerySubmitted(
        query_key=question.query_key,
        judge=judge().judge_id,
        dimension=pairing.rubric.dimension,
        prompt_id=pairing.prompt.prompt_id,
        entrant_a=pairing.a.entrant.entrant_id,
        entrant_b=pairing.b.entrant.entrant_id,
        order=order,
        rubric_digest=pairing.rubric.digest,
        response_a=pairing.a.response_key,
        response_b=pairing.b.response_key,
    )


def faults_of(*events: Event, streams: Sequence[StreamId] = ()) -> list[tuple[int, str]]:
    """Return what does not follow, with the number of the event."""
    meaning = ConsistencyCheck()
    of = [*streams, *[STREAM] * (len(events) - len(streams))]
    placed = [
        Recorded(n, stream, n, 0, bytes(32), event)
        for n, (event, stream) in enumerate(zip(events, of, strict=True), 1)
    ]
    return [(each.position, why) for each in placed for why in meaning.faults_of(each)]


MATCH = matches_of(known(*answered(opened())))[0]
FORWARD, SWAPPED = MATCH.forward.query_key, MATCH.swapped.query_key
ASKED = (submitted(MATCH, MATCH.forward, "forward"), submitted(MATCH, MATCH.swapped, "swapped"))
SAID: tuple[VerdictReceived, ...] = (verdict(FORWARD, "A"), verdict(SWAPPED, "B"))
TRUE: tuple[Event, ...] = (*ASKED, *SAID, reconciled(MATCH, "a"))
PROMPT = prompt()
PLANNED = planned(FORWARD, SWAPPED)
BATCH, BATCHED = PLANNED.batch_key, sent(PLANNED.batch_key)


class Case(NamedTuple):
    """A history whose last event does not follow, and its twin in which it does."""

    unsound: tuple[Event, ...]
    why: str
    sound: tuple[Event, ...]


CASES = {
    "verdict on a query never submitted": Case(
        (ASKED[0], SAID[1]),
        f"it answers query {SWAPPED[:12]}, which was not submitted before it",
        (ASKED[1], SAID[1]),
    ),
    "verdict on a query submitted later": Case(
        (SAID[0],),
        f"it answers query {FORWARD[:12]}, which was not submitted before it",
        (ASKED[0], SAID[0]),
    ),
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
        (ASKED[0], failure(MATCH.swapped)),
        f"it answers query {SWAPPED[:12]}, which was not submitted before it",
        (ASKED[1], failure(MATCH.swapped)),
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
    "batch that nobody planned": Case(
        (BATCHED,),
        f"its batch {BATCH[:12]} was not planned before it",
        (PLANNED, BATCHED),
    ),
    "end of a batch that nobody planned": Case(
        (ended(BATCH),),
        f"its batch {BATCH[:12]} was not planned before it",
        (PLANNED, BATCHED, ended(BATCH)),
    ),
    "failure of a batch that nobody planned": Case(
        (not_created(BATCH),),
        f"its batch {BATCH[:12]} was not planned before it",
        (PLANNED, not_created(BATCH)),
    ),
    "query of a batch that was not submitted": Case(
        (PLANNED, replace(ASKED[0], batch_key=BATCH)),
        f"its batch {BATCH[:12]} was not submitted before it",
        (PLANNED, BATCHED, replace(ASKED[0], batch_key=BATCH)),
    ),
    "registration under another's digest": Case(
        (PromptRegistered(prompt=PROMPT, digest=prompt("p2").content_digest),),
        "its digest does not match what it registers",
        (PromptRegistered(prompt=PROMPT, digest=PROMPT.content_digest),),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_event_that_does_not_follow_is_told_why(case: Case) -> None:
    """The chain proves only that a falsehood is the one that was recorded."""
    assert faults_of(*case.unsound) == [(len(case.unsound), case.why)]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_its_sound_twin_has_no_fault(case: Case) -> None:
    """A check that cries wolf is soon no longer read."""
    assert faults_of(*case.sound) == []


def test_an_outcome_without_any_verdict_is_told_of_both() -> None:
    """Who repairs a ledger wants all that is wrong; the policy cannot be asked."""
    found = faults_of(reconciled(MATCH, "a"))

    assert [why.split()[1] for _, why in found] == ["forward", "swapped"]


def test_equal_texts_put_one_query_for_both_orders() -> None:
    """It is paid for once, so it stands on the ledger under one order only."""
    opening = opened()
    texts = {("base", "p1"): "aspirin", ("tuned", "p1"): "aspirin"}
    (match,) = matches_of(known(*opening, *responses(known(*opening), texts)))
    asked = submitted(match, match.forward, "forward")
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


@given(history=histories())
def test_outcomes_of_any_history_follow_from_their_verdicts(history: list[Event]) -> None:
    """However a tournament went: what our policy makes is never found fault with."""
    not_submitted = "was not submitted before it"

    assert [why for _, why in faults_of(*history) if not why.endswith(not_submitted)] == []


def test_a_verdict_that_was_paid_for_twice_is_told() -> None:
    """The writer knows every key; whoever writes past it leaves this behind."""
    again = replace(SAID[0], reply="Once more.\nVERDICT: A")

    assert faults_of(*ASKED, *SAID, again) == [
        (5, "the same result was recorded and paid for before")
    ]


def test_a_response_that_was_made_twice_is_told() -> None:
    """Which of the two a verdict is about could not be said any more."""
    (response,) = [each for each in answered(opened()) if isinstance(each, ResponseGenerated)][:1]

    assert faults_of(response, response) == [
        (2, "the same result was recorded and paid for before")
    ]


def test_tournaments_that_were_merged_may_have_paid_for_the_same() -> None:
    """Their ledgers knew nothing of each other."""
    theirs = StreamId("theirs")

    found = faults_of(*ASKED, *SAID, *SAID, streams=[STREAM] * 4 + [theirs] * 2)

    assert found == []


OTHERWISE = (verdict(FORWARD, "B"), verdict(SWAPPED, "A"))
THEIRS = StreamId("theirs")


def test_an_outcome_follows_from_the_verdicts_of_its_own_tournament() -> None:
    """Merged during a run, theirs may come between our verdicts and the outcome made of them."""
    events: tuple[Event, ...] = (*ASKED, *SAID, *OTHERWISE, reconciled(MATCH, "b"))
    streams = [STREAM] * 4 + [THEIRS] * 3

    sound = faults_of(*events, reconciled(MATCH, "a"), streams=streams)
    unsound = faults_of(*events, reconciled(MATCH, "b"), streams=streams)

    assert sound == []
    made = "swap-consistent gives 'a' for verdicts A and B, the event says 'b'"
    assert unsound == [(8, made)]


def test_an_outcome_may_follow_from_verdicts_of_any_other_tournament() -> None:
    """Whoever asks nothing that others asked does not know yet whom else a merge will bring."""
    verdicts: tuple[Event, ...] = (*ASKED, *SAID, *OTHERWISE)
    streams = [StreamId("third")] * 4 + [THEIRS] * 2

    for outcome in ("a", "b"):
        assert faults_of(*verdicts, reconciled(MATCH, outcome), streams=streams) == []
    [(_, why)] = faults_of(*verdicts, reconciled(MATCH, "tie"), streams=streams)
    assert why.startswith("swap-consistent gives 'a' for verdicts A and B or ")
