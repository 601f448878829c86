"""A tournament whose texts were redacted: what is on record stays, and nothing is asked again."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ledger.events.judging import JudgeQuerySubmitted, VerdictReceived, repeat_key
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.events.values import REDACTED
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.battles.details import battle_details
from projections.event_consistency import ConsistencyCheck
from projections.fold import fold
from projections.ratings.judge_bias.measures import biases
from projections.redactions import NONE_REDACTED
from projections.reliability.calibration import against_gold
from projections.tournament.compared import IDENTICAL
from projections.tournament.folding import advance, tournament_of
from projections.tournament.matches import match_of
from projections.tournament.remaining import (
    ENDLESS_RETRIES,
    missing_responses,
    open_queries,
    unreconciled,
)
from projections.tournament.settlement import reply_of, settle, settle_verdicts, verdict_of
from projections.tournament.state import Tournament
from projections.verdicts.parsers import PARSERS
from projections.verdicts.policies import CONCATENATE, Rule
from tests.support.builders.events import (
    STREAM,
    entrant,
    key,
    known,
    opened,
    prompt,
    responses,
    verdict,
)
from tests.support.builders.money import put
from tests.support.builders.worlds import (
    COUNTERBALANCED,
    Fate,
    answered,
    cup,
    everything,
    failure,
    history,
    judged,
    matches_of,
    planned_pairings,
    reconciled,
    settled,
    sure,
    unanswerable,
    with_judging,
)

OTHER = StreamId("other")
FATES: Sequence[Fate] = ("a", "b", "tie", "inconsistent", "pending", "unreadable")


def asked(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return events in which every query of every match was sent before the verdicts."""
    tournament = known(*events)
    sent = {
        question.query_key: put(match, question, by=tournament.panel[0].judge_id)
        for match in matches_of(tournament)
        for question in (match.forward, match.swapped)
    }
    place = next(n for n, each in enumerate(events) if isinstance(each, VerdictReceived))
    return (*events[:place], *sent.values(), *events[place:])


def redacted(events: Sequence[Event], *which: Event) -> tuple[Recorded, ...]:
    """Return events as a ledger gives them after some of them were redacted."""
    with Ledger.in_memory() as ledger:
        places = {
            id(event): receipt.recorded.position
            for event in events
            for receipt in ledger.append(STREAM, [event])
        }
        for event in which:
            ledger.redact(places[id(event)], "a key")
        return tuple(ledger.read())


def state_of(events: Sequence[Recorded]) -> Tournament:
    """Return what the tournament knows."""
    return fold(tournament_of(STREAM), events)


def of_type(events: Sequence[Event], name: str) -> list[Event]:
    """Return the events of a type."""
    return [each for each in events if type(each).__name__ == name]


def without_first(events: Sequence[Event], name: str = "ResponseGenerated") -> Tournament:
    """Return what the tournament knows after the first event of a type was redacted."""
    return state_of(redacted(events, of_type(events, name)[0]))


WORLD = asked(history(cup(), *FATES))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["ResponseGenerated", "VerdictReceived", "JudgeQueryFailed"])
def test_every_outcome_on_record_stays_and_nothing_is_asked_again(name: str) -> None:
    """Ratings need no text; what was paid for is on record, whether or not its text still is."""
    whole = known(*WORLD)
    judge, prompts = whole.panel[0], everything(whole)
    queries = open_queries(whole, prompts, judge, ENDLESS_RETRIES)
    still_open = {each.asked.query_key for each in queries}
    for event in of_type(WORLD, name)[::3]:
        state = state_of(redacted(WORLD, event))

        asked_again = open_queries(state, prompts, judge, ENDLESS_RETRIES)
        outcomes = [(each.outcome, each.share) for each in settled(state)]

        assert outcomes == [(each.outcome, each.share) for each in settled(whole)]
        assert missing_responses(state, prompts) == ()
        assert {each.asked.query_key for each in asked_again} <= still_open
        assert unreconciled(state, prompts, judge) == ()


def test_a_redacted_response_is_shown_to_nobody() -> None:
    """Its queries hold its text: none can be built, in any order."""
    first = of_type(WORLD, "ResponseGenerated")[0]
    state = state_of(redacted(WORLD, first))
    pairings = planned_pairings(state)

    without = [each for each in pairings if match_of(state, each, state.panel[0]) is None]

    assert isinstance(first, ResponseGenerated)
    key = first.response_key
    assert without == [
        each for each in pairings if key in (each.a.response_key, each.b.response_key)
    ]
    assert state.responses[key].text == REDACTED


def test_a_pair_without_an_outcome_stays_without() -> None:
    """It is counted as redacted: neither pending, which would ask for it, nor a tie."""
    statuses = [each.status for each in settled(without_first(history(cup(1), "a")))]

    assert statuses == ["a", "redacted", "pending"]


def test_a_pair_of_identical_responses_is_still_one() -> None:
    """Its tie was asked of nobody, and is counted apart from ties that a judge saw."""
    opening = opened(entrants=[entrant("base"), entrant("tuned")])
    texts = {("base", "p1"): "Yes.", ("tuned", "p1"): "Yes."}
    events = (*opening, *responses(known(*opening), texts))
    [match] = matches_of(known(*events))
    tie = replace(reconciled(match, "tie"), basis="identical")
    state = without_first((*events, tie))

    [settlement] = settled(state)

    assert settlement.match is None
    assert settlement.exact_status == IDENTICAL


def test_other_rules_cannot_read_a_redacted_response() -> None:
    """Only the recorded outcome is left of its pairs; each order alone is not on record."""
    state = without_first(history(cup(1), "a", "b", "tie"))

    by_order = settle(state, everything(state), state.panel[0], Rule(CONCATENATE))

    assert [each.status for each in by_order] == ["redacted"] * 4 + ["tie"] * 2


def once(*events: Event) -> tuple[Event, ...]:
    """Return events where most pairs were asked in one order, and slot A always won."""
    return asked(judged(with_judging(events, COUNTERBALANCED), lambda _: "A"))


@pytest.mark.no_cover
def test_what_was_asked_in_one_order_stays() -> None:
    """Its verdict is found by the query that was sent; another tournament's answer changes none."""
    asked_once = once(*answered(cup(4)))
    whole = known(*asked_once)
    assert {each.status for each in settled(whole)} == {"a", "b", "inconsistent"}

    for event in of_type(asked_once, "ResponseGenerated")[::4]:
        state = state_of(redacted(asked_once, event))

        for found, expected in zip(settled(state), settled(whole), strict=True):
            assert (found.status, found.share, found.weight, found.slot) == (
                expected.status,
                expected.share,
                expected.weight,
                expected.slot,
            )


def again(events: Sequence[Event], *, key: Digest, of: JudgeQuerySubmitted) -> tuple[Event, ...]:
    """Return events, then a query about the same pair under another key, and B as its verdict."""
    return (*events, replace(of, query_key=key), verdict(key, "B", by=of.judge))


def test_a_repeat_is_not_taken_for_the_query_that_counts() -> None:
    """Its verdict changes no outcome, with the text or without."""
    events = once(*answered(cup(4)))
    before = [each.status for each in settled(known(*events))]
    for sent in of_type(events, "JudgeQuerySubmitted"):
        assert isinstance(sent, JudgeQuerySubmitted)
        repeat = replace(sent, repeats=sent.query_key)
        events = again(events, key=repeat_key(sent.query_key), of=repeat)

    state = state_of(redacted(events, *of_type(events, "ResponseGenerated")))

    assert [each.status for each in settled(state)] == before


@pytest.mark.no_cover
def test_of_two_queries_about_a_redacted_pair_the_newest_counts() -> None:
    """The judge of today was asked last: its settings changed, and its name did not."""
    events = once(*answered(cup(4)))
    before = settled(known(*events))
    for n, sent in enumerate(of_type(events, "JudgeQuerySubmitted")):
        assert isinstance(sent, JudgeQuerySubmitted)
        events = again(events, key=key(f"changed {n}"), of=sent)

    state = state_of(redacted(events, *of_type(events, "ResponseGenerated")))

    in_one_order = [
        (now.status, then.status)
        for now, then in zip(settled(state), before, strict=True)
        if then.slot
    ]
    assert {*in_one_order} == {("a", "b"), ("b", "a")}


@pytest.mark.no_cover
@pytest.mark.parametrize("judging", ["{}", COUNTERBALANCED])
def test_verdicts_are_settled_as_outcomes_are(judging: str) -> None:
    """A gate and a look count what is on record of redacted responses, too."""
    events = asked(judged(with_judging(answered(cup(4)), judging), lambda _: "A"))
    state = state_of(redacted(events, *of_type(events, "ResponseGenerated")[:2]))
    whole = known(*events)

    found = settle_verdicts(state, everything(state), state.panel[0])

    assert found == settled(state)
    assert [each.status for each in found] == [each.status for each in settled(whole)]


@pytest.mark.no_cover
def test_twins_share_a_query_whose_answer_is_redacted() -> None:
    """It names the pair of one of them, and is about the texts of both."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(6)],
        entrants=[entrant("zoe"), entrant("amy"), entrant("kim")],
    )
    texts = {(name, f"p{n}"): "the same" for n in range(6) for name in ("amy", "kim")}
    texts |= {("zoe", f"p{n}"): "another" for n in range(6)}
    asked_once = once(*opening, *responses(known(*opening), texts))

    before = [each.status for each in settled(known(*asked_once))]

    assert "tie" in before
    assert [each.status for each in settled(without_first(asked_once))] == before


def test_without_its_query_a_redacted_pair_has_no_verdict() -> None:
    """As of a tournament that did not ask it in the order that is planned."""
    events = with_judging(answered(cup(1)), COUNTERBALANCED)

    statuses = [each.status for each in settled(without_first(events))]

    assert statuses == ["redacted", "redacted", "pending"]


def test_a_missing_partner_keeps_a_pair_pending() -> None:
    """The other response may still come, and then tell nothing more of this pair."""
    opening = cup(1)
    first, second, _ = responses(known(*opening))
    state = state_of(redacted([*opening, first, second], first))

    assert [each.status for each in settled(state)] == ["redacted", "pending", "pending"]


@pytest.mark.no_cover
def test_an_outcome_of_other_responses_is_not_taken() -> None:
    """An entrant's label may have stood for other weights: then the names are the same."""
    events = asked(history(cup(1), "a", "b", "tie"))
    stronger = opened(
        prompts=[prompt("p1")],
        entrants=[entrant("zoe", weights_digest="0" * 64), entrant("amy"), entrant("kim")],
        opening=2,
    )
    events = (*events, *(each for each in stronger if each not in events))
    new = known(*events)
    zoe, *_ = (each for each in responses(new) if each.response_key not in new.responses)
    later = [*events, zoe]

    statuses = [each.status for each in settled(state_of(redacted(later, zoe)))]

    assert statuses == ["redacted", "redacted", "tie"]


def test_another_tournaments_text_serves_if_ours_is_intact() -> None:
    """Responses are shared by key; the redacted copy of another tournament changes nothing."""
    events = history(cup(1), "a", "b", "tie")
    zoe = of_type(events, "ResponseGenerated")[0]
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, events)
        [receipt] = ledger.append(OTHER, [zoe])
        ledger.redact(receipt.recorded.position, "a key")
        state = state_of([*ledger.read()])

    assert isinstance(zoe, ResponseGenerated)
    assert zoe not in state.redactions
    assert [each.match is None for each in settled(state)] == [False] * 3


@pytest.mark.no_cover
def test_folding_may_stop_and_resume() -> None:
    """As for every projection."""
    events = redacted(WORLD, *of_type(WORLD, "ResponseGenerated")[:2])
    whole = state_of(events)

    for stop in range(len(events)):
        assert advance(advance(Tournament(STREAM), events[:stop]), events[stop:]) == whole
    assert whole.redactions.positions == tuple(e.position for e in events if e.redacted)
    assert known(*WORLD).redactions == NONE_REDACTED


@pytest.mark.no_cover
@pytest.mark.parametrize("parser", PARSERS)
def test_no_parser_reads_a_verdict_in_a_redacted_reply(parser: str) -> None:
    """Under the rule on record the verdict stays; read again, the reply says nothing."""
    events = history(cup(1), "a")
    first = of_type(events, "VerdictReceived")[0]
    state = state_of(redacted(events, first))
    assert isinstance(first, VerdictReceived)

    again = settle(state, everything(state), state.panel[0], Rule(parser=parser))

    assert verdict_of(state, first.query_key, None) == "A"
    assert verdict_of(state, first.query_key, parser) is None
    assert again[0].status == "redacted"


def test_a_reply_that_says_redacted_is_read_as_any_other() -> None:
    """A judge may say the word; only an event that was redacted has lost its reply."""
    events = [*history(cup(1), "a")]
    first = of_type(events, "VerdictReceived")[0]
    assert isinstance(first, VerdictReceived)
    events[events.index(first)] = replace(first, reply=REDACTED)

    assert reply_of(known(*events), first.query_key, "final-line@1") == REDACTED


def test_a_failed_reply_cannot_be_read_again() -> None:
    """Another parser might have found a verdict in it."""
    match, *_ = matches_of(known(*WORLD))
    failed = replace(failure(match.forward), reply="VERDICT: A")
    events = [*history(cup()), failed]

    state = state_of(redacted(events, failed))

    assert verdict_of(known(*events), match.forward.query_key, "final-line@1") == "A"
    assert verdict_of(state, match.forward.query_key, "lenient-tap@1") is None
    assert settled(state)[0].status == "unreadable"


def test_a_failed_response_is_still_failed() -> None:
    """Only what the server said of it is gone."""
    opening = cup(1)
    failed = replace(unanswerable(planned_pairings(known(*opening))[0].a), detail="sk-1")
    state = state_of(redacted([*opening, failed], failed))

    assert [each.status for each in settled(state)] == ["no_response", "no_response", "pending"]
    assert state.redactions.positions == (len(opening) + 1,)


@pytest.mark.no_cover
def test_what_was_spent_stays() -> None:
    """A cap must not be lifted by a redaction."""
    match, *_ = matches_of(known(*WORLD))
    failed = replace(failure(match.forward), worst_usd=2.5, detail="sk-1")
    events = [*history(cup()), failed]

    before, after = known(*events), state_of(redacted(events, failed))

    assert (after.spent_usd, after.lost_usd) == (before.spent_usd, before.lost_usd)
    assert after.lost_usd == 2.5
    assert after.useless_replies == before.useless_replies


def test_what_is_redacted_is_consistent() -> None:
    """A verdict whose reply is gone still answers a query; what it said cannot be checked."""
    check = ConsistencyCheck()

    faults = [
        check.faults_of(each.event, each.stream, is_redacted=each.redacted)
        for each in redacted(WORLD, *of_type(WORLD, "VerdictReceived"))
    ]

    assert not any(faults)


def test_a_response_without_its_text_is_not_held_against_the_gold_answer() -> None:
    """Whether it was right cannot be said any more, so it is not counted as wrong."""
    events = sure(answered(cup(1)), {"zoe": 0.9, "amy": 0.8})

    found = against_gold(without_first(events))

    assert [each.entrant_id for each in against_gold(known(*events))] == ["zoe", "amy"]
    assert [each.entrant_id for each in found] == ["amy"]


def test_a_battle_says_that_a_response_was_redacted() -> None:
    """The screen shows what is left: the outcome."""
    state = without_first(history(cup(1), "a"))

    first, second, _ = (
        battle_details(state, [pairing], state.panel[0]) for pairing in planned_pairings(state)
    )

    assert [each.status for each in first.dimensions[0].orders] == ["redacted"] * 2
    assert first.dimensions[0].settlement.status == "a"
    assert second.dimensions[0].settlement.status == "redacted"
    assert first.a.response is not None
    assert first.a.response.text == REDACTED


def test_lengths_are_compared_where_both_responses_can_be_read() -> None:
    """The pairs of a redacted one still count for transitivity, whose figures are of outcomes."""
    response = of_type(WORLD, "ResponseGenerated")[0]
    whole, without = (state_of(redacted(WORLD, *which)) for which in ((), (response,)))

    found = [
        {each.measure: each.n for each in biases(state, state.panel)} for state in (whole, without)
    ]

    assert found[0]["transitivity"] == found[1]["transitivity"]
    assert found[0].keys() == found[1].keys()
