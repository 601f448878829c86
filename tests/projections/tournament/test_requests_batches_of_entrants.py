"""Batches that ask entrants: what they hold is asked for, and nobody else's business."""

from ledger.events.registry import Event
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import Digest
from projections.tournament.matches import planned_responses
from projections.tournament.remaining import (
    awaited_queries,
    is_missing,
    missing_responses,
    responses_to_come,
)
from projections.tournament.state import Tournament
from tests.support.builders.batches import ended, planned_batch, sent
from tests.support.builders.events import entrant, judge, key, known, opened, prompt

ENTRANT = entrant("hosted", loader="endpoint", dtype=None)
OPENED = opened(entrants=[ENTRANT, entrant("near")], prompts=[prompt("p1"), prompt("p2")])
BANK = [each.prompt_id for each in known(*OPENED).bank]
KEYS = tuple(
    each.response_key for each in planned_responses(known(*OPENED), BANK) if each.entrant == ENTRANT
)
PLAN = planned_batch(*KEYS, by=ENTRANT)
SUBMITTED = RequestsSubmitted(
    number=1, entrant=ENTRANT.entrant_id, model="m", requests=KEYS, worst_usd=(0.5, 0.5)
)
IN_FLIGHT = (*OPENED, PLAN, SUBMITTED, sent(PLAN.batch_key))


def missing(*events: Event) -> set[Digest]:
    """Return the keys of the responses that are to be generated."""
    state = known(*events)
    to_come = {each.response_key for each in responses_to_come(state, BANK)}
    now = {each.response_key for each in missing_responses(state, BANK)}
    cells = planned_responses(state, BANK)
    assert now == to_come == {each.response_key for each in cells if is_missing(state, each)}
    return now


def awaited(state: Tournament) -> list[bool]:
    """Say of each request of the batch whether it has not ended."""
    return [state.is_awaited(state.batches[PLAN.batch_key], each) for each in KEYS]


def test_responses_in_a_batch_are_not_missing_until_it_has_ended() -> None:
    """Who asked for them again would pay twice."""
    assert missing(*OPENED) - missing(*IN_FLIGHT) == {*KEYS}
    assert missing(*IN_FLIGHT, ended(PLAN.batch_key)) == missing(*OPENED)


def test_what_will_be_judged_is_forecast_with_the_responses_in_a_batch() -> None:
    """Who consents to all must see all: pairs of two prompts, in both orders."""
    before, after = known(*OPENED), known(*IN_FLIGHT)

    forecasts = [awaited_queries(each, BANK, judge(), retries=0) for each in (before, after)]

    assert [len(each) for each in forecasts] == [4, 4]


def test_a_request_is_awaited_until_it_is_settled() -> None:
    """Results that are read again, after a kill, must not be paid for again."""
    charge = Charge(request=KEYS[0], fate="refused")
    settled = RequestsSettled(
        number=1, entrant=ENTRANT.entrant_id, model="m", charges=(charge,), price_table=None
    )

    assert awaited(known(*IN_FLIGHT)) == [True, True]
    assert awaited(known(*IN_FLIGHT, settled)) == [False, True]


def test_the_batches_of_judges_are_told_apart() -> None:
    """Caps on judging count theirs alone."""
    other = planned_batch(key("query"), number=2, by=judge())

    state = known(*IN_FLIGHT, other)

    ours, theirs = state.open_batches
    assert (state.is_to_entrant(ours), state.is_to_entrant(theirs)) == (True, False)
    assert state.open_judge_batches == (theirs,)
    assert not state.is_awaited(theirs, key("query"))
    assert state.in_flight == {*KEYS, key("query")}
