"""Decisions on batches that ask entrants: each request has one end, whatever becomes of a batch."""

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from commands.decisions.commands import DropBatch, EndBatch, ReopenBatch, SubmitBatch
from commands.decisions.decide import decide
from commands.ports import BatchState
from ledger.events.judging import Fate
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.events import NOON, entrant, key, opened
from tests.support.specification import after, given

ENTRANT = entrant("hosted", loader="endpoint", dtype=None)
REQUESTS = (key("one"), key("two"))
PLAN = planned_batch(*REQUESTS, by=ENTRANT)
KEY = PLAN.batch_key
SUBMITTED = RequestsSubmitted(
    number=1,
    entrant=ENTRANT.entrant_id,
    model=ENTRANT.weights,
    requests=REQUESTS,
    worst_usd=(0.25, None),
)
PLANNED = (*opened(entrants=[ENTRANT, entrant("near")]), PLAN, SUBMITTED)
IN_FLIGHT = (*PLANNED, sent(KEY))
TAKEN = BatchState("msgbatch_01", NOON, NOON + timedelta(days=1), has_ended=False, n_queries=2)
DONE = replace(TAKEN, has_ended=True)
SILENT = "the provider keeps no result of it"


def settled(*charges: Charge, number: int = 1) -> RequestsSettled:
    """Return the end of requests."""
    return RequestsSettled(
        number=number,
        entrant=ENTRANT.entrant_id,
        model=ENTRANT.weights,
        charges=charges,
        price_table=None,
    )


def ends(fate: Fate, *usd: float | None, why: str = SILENT) -> tuple[Charge, ...]:
    """Return the same end of both requests."""
    return tuple(
        Charge(request=each, fate=fate, usd=cost, detail=why)
        for each, cost in zip(REQUESTS, usd, strict=True)
    )


def test_a_batch_that_is_taken_has_its_requests_on_record() -> None:
    """They were recorded with the plan, before they could cost money."""
    given(*PLANNED).when(SubmitBatch(KEY, TAKEN)).then(sent(KEY))


def test_requests_of_a_batch_that_was_never_created_cost_nothing() -> None:
    """They are asked again."""
    dropped = ends("not sent", 0.0, 0.0, why="refused")
    given(*PLANNED).when(DropBatch(KEY, "refused")).then(settled(*dropped), not_created(KEY))


@pytest.mark.parametrize(
    ("failure", "charges"),
    [(None, ends("perhaps billed", 0.25, None)), ("no", ends("refused", 0.0, 0.0))],
)
def test_requests_without_a_result_end_with_their_batch(
    failure: str | None, charges: tuple[Charge, ...]
) -> None:
    """At their worst cost, unless the provider found the batch invalid."""
    command = EndBatch(KEY, replace(DONE, failure=failure))
    given(*IN_FLIGHT).when(command).then(settled(*charges), ended(KEY, n_succeeded=0))


def test_a_request_that_ended_ends_once() -> None:
    """What was read is kept, and the rest alone is given up."""
    answered, lost = ends("perhaps billed", 0.25, None)
    known = (*IN_FLIGHT, settled(structs.replace(answered, fate="refused")))

    given(*known).when(EndBatch(KEY, DONE)).then(settled(lost, number=2), ended(KEY, 0))
    given(*known, settled(lost, number=2)).when(EndBatch(KEY, DONE)).then(ended(KEY, 0))


def test_what_was_lost_is_taken_up_under_a_new_number_at_no_further_cost() -> None:
    """It counts at its worst since it was given up."""
    lost = settled(*ends("perhaps billed", 0.25, None))
    plan = planned_batch(REQUESTS[1], number=2, by=ENTRANT)
    again = structs.replace(SUBMITTED, number=2, requests=REQUESTS[1:], worst_usd=(0.0,))

    given(*IN_FLIGHT, lost, ended(KEY)).when(ReopenBatch(KEY, TAKEN, REQUESTS[1:])).then(
        structs.replace(plan, expected_usd=0.0, worst_usd=0.0), again, sent(plan.batch_key)
    )
    assert decide(ReopenBatch(KEY, TAKEN, REQUESTS), after(*IN_FLIGHT)) == ()
