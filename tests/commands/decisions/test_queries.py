"""The decider on batches: an intent, what came of it, and that repeating a step adds nothing."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from commands.decisions.commands import (
    Command,
    DropBatch,
    EndBatch,
    PlanBatch,
    ReceiveAnswer,
    ReopenBatch,
    SubmitBatch,
)
from commands.decisions.decide import decide
from commands.ports import BatchState, NoReply
from ledger.events.judging import JudgeBatchEnded, JudgeBatchNotCreated, JudgeQueryFailed, batch_key
from ledger.events.registry import Event
from ledger.identity import Digest
from projections.tournament.remaining import open_queries
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.commands import JUDGE, P1, failed, reply, submitted
from tests.support.builders.events import NOON, STREAM, opened, responses, verdict
from tests.support.specification import after, given

ANSWERED = (*opened(), *responses(after(*opened())))
QUERIES = open_queries(after(*ANSWERED), [P1], JUDGE, retries=1)
FORWARD, SWAPPED = (query.asked.query_key for query in QUERIES)
PLAN = planned_batch(FORWARD, SWAPPED)
KEY = PLAN.batch_key
TAKEN = BatchState("msgbatch_01", NOON, NOON + timedelta(days=1), has_ended=False, n_queries=2)
DONE = BatchState(
    "msgbatch_01", NOON, NOON + timedelta(days=1), has_ended=True, n_queries=2, n_succeeded=2
)
ASKED = tuple(submitted(query, batch_key=KEY) for query in QUERIES)
PLANNED = (*ANSWERED, PLAN)
IN_FLIGHT = (*PLANNED, sent(KEY), *ASKED)
READ = (*IN_FLIGHT, verdict(FORWARD), verdict(SWAPPED))
SUBMIT = SubmitBatch(KEY, TAKEN, QUERIES)


def intend(**usd: float) -> PlanBatch:
    """Return the command that plans both queries."""
    known = {"expected_usd": None, "worst_usd": None, "cap_usd": None}
    return PlanBatch(PLAN.judge, PLAN.queries, **{**known, **usd}, planned_at=NOON)


def lost(query_key: Digest) -> JudgeQueryFailed:
    """Return what is recorded of a query that an ended batch says nothing of."""
    return failed(
        query_key,
        reason="expired",
        reply="",
        stop_reason="",
        model="",
        detail="the provider keeps no result of it",
        fate="perhaps billed",
        worst_usd=PLAN.worst_usd and PLAN.worst_usd / 2,
    )


def test_a_batch_is_planned_with_all_that_it_may_cost() -> None:
    """The intent is committed before money can move, and says what was agreed to."""
    command = intend(expected_usd=0.5, worst_usd=2.0, cap_usd=5.0)

    (plan,) = decide(command, after(*ANSWERED))

    assert plan.fields == {**PLAN.fields, "expected_usd": 0.5, "worst_usd": 2.0, "cap_usd": 5.0}


def test_planning_again_is_another_batch() -> None:
    """Each plan is a new intent: what failed as a whole may be sent once more."""
    again = planned_batch(FORWARD, SWAPPED, number=2)

    given(*PLANNED, not_created(KEY)).when(intend()).then(again)
    assert again.batch_key == batch_key(STREAM, 2, (FORWARD, SWAPPED)) != KEY


def test_a_batch_that_was_taken_is_recorded_with_its_queries() -> None:
    """One transaction: a batch without its queries could not be answered."""
    given(*PLANNED).when(SUBMIT).then(sent(KEY), *ASKED)


def test_a_query_that_was_answered_meanwhile_is_not_submitted() -> None:
    """Another tournament paid for it between the plan and the answer of the provider."""
    given(*PLANNED, verdict(FORWARD)).when(SUBMIT).then(sent(KEY), ASKED[1])


def test_a_query_that_failed_before_is_the_next_attempt_in_its_batch() -> None:
    """Attempts are counted over batches, so that late answers are told apart."""
    known = (*ANSWERED, submitted(QUERIES[0]), failed(FORWARD), PLAN)
    again = QUERIES[0]._replace(n_failed=1)

    given(*known).when(SubmitBatch(KEY, TAKEN, (again, QUERIES[1]))).then(
        sent(KEY), submitted(QUERIES[0], attempt=2, batch_key=KEY), ASKED[1]
    )


def test_a_batch_that_was_refused_is_dropped_with_the_reason() -> None:
    """Its queries are open again, and a reader sees why the number was skipped."""
    why = "400: too large"

    given(*PLANNED).when(DropBatch(KEY, why)).then(JudgeBatchNotCreated(batch_key=KEY, why=why))


def test_a_batch_whose_results_were_read_is_ended_with_the_providers_counts() -> None:
    """Counts that differ from what was recorded tell of results that were lost."""
    given(*READ).when(EndBatch(KEY, DONE)).then(ended(KEY))


def test_what_an_ended_batch_says_nothing_of_has_expired() -> None:
    """Nothing waits for ever: what the results do not hold is open to be asked again."""
    given(*IN_FLIGHT, verdict(FORWARD)).when(EndBatch(KEY, DONE)).then(lost(SWAPPED), ended(KEY))


def test_a_query_that_failed_is_not_lost_when_its_batch_ends() -> None:
    """It has its own reason, and one failure for an attempt is enough."""
    answered = (failed(FORWARD), verdict(SWAPPED))

    given(*IN_FLIGHT, *answered).when(EndBatch(KEY, DONE)).then(ended(KEY))


def test_queries_are_open_again_after_a_batch_without_results() -> None:
    """A batch that the provider forgot costs time, and nothing else."""
    (*losses, end) = decide(EndBatch(KEY, DONE), after(*IN_FLIGHT))
    state = after(*IN_FLIGHT, *losses, end)

    found = open_queries(state, [P1], JUDGE, retries=0)

    assert [(each.asked.query_key, each.n_failed) for each in found] == [(FORWARD, 1), (SWAPPED, 1)]
    assert isinstance(end, JudgeBatchEnded)


@pytest.mark.parametrize(
    ("known", "command"),
    [
        (IN_FLIGHT, SUBMIT),
        ((*PLANNED, not_created(KEY)), SUBMIT),
        ((*PLANNED, not_created(KEY)), DropBatch(KEY, "another reason")),
        ((*READ, ended(KEY)), DropBatch(KEY, "too late")),
        ((*READ, ended(KEY)), EndBatch(KEY, DONE)),
        (PLANNED, EndBatch(KEY, DONE)),
        (READ, ReceiveAnswer(JUDGE, reply(FORWARD))),
        ((*IN_FLIGHT, lost(FORWARD)), ReceiveAnswer(JUDGE, NoReply(FORWARD, "errored", "500"))),
    ],
    ids=[
        "submit twice",
        "submit what is not there",
        "drop twice",
        "drop what ended",
        "end twice",
        "end what nobody sent",
        "read a verdict twice",
        "read a failure twice",
    ],
)
def test_a_step_that_was_taken_adds_nothing(known: tuple[Event, ...], command: Command) -> None:
    """A run that died in between takes every step again, and must not double it."""
    given(*known).when(command).then()


GIVEN_UP = (*IN_FLIGHT, verdict(FORWARD), lost(SWAPPED), ended(KEY, n_succeeded=1))


def test_a_batch_that_was_given_up_is_taken_up_under_a_new_number() -> None:
    """Its lost query is sent again in name only; what it may cost is counted since it was lost.

    It is all that the plan holds: another may be in another batch by now.
    """
    again = QUERIES[1]._replace(n_failed=1)
    plan = planned_batch(SWAPPED, number=2)

    given(*GIVEN_UP).when(ReopenBatch(KEY, TAKEN, (again,))).then(
        replace(plan, expected_usd=0.0, worst_usd=0.0),
        sent(plan.batch_key),
        submitted(again, attempt=2, batch_key=plan.batch_key),
    )


def test_a_batch_in_flight_is_not_taken_up_again() -> None:
    """Two commands may ask for it."""
    assert decide(ReopenBatch(KEY, TAKEN, ()), after(*IN_FLIGHT)) == ()


@pytest.mark.parametrize("command", [SUBMIT, DropBatch(KEY, "why"), EndBatch(KEY, DONE)])
def test_a_batch_that_nobody_planned_is_a_fault_of_the_program(command: Command) -> None:
    """Its intent was never committed, so money may have moved that nobody agreed to."""
    given(*ANSWERED).when(command).then_raises(KeyError, KEY)
