"""The double that keeps batches in memory, held to the contract of the real ones."""

from datetime import UTC, datetime, timedelta

import pytest

from commands.errors import BatchRefused, BatchUncertain, SpendLimitReached
from commands.ports import NoReply
from tests.commands.contracts import QUERIES
from tests.commands.contracts_batch import BatchJudgeContract
from tests.support.scripted_batches import ScriptedBatchJudge

START = datetime(2026, 10, 1, tzinfo=UTC)


class TestScriptedBatchJudge(BatchJudgeContract):
    """The judge of other tests."""

    def make(self) -> ScriptedBatchJudge:
        """Return a judge whose clock moves on a second each time it is read."""
        ticks = iter(range(10**9))
        self.judge = ScriptedBatchJudge(
            lambda _: "VERDICT: A",
            ends_at_once=False,
            now=lambda: START + timedelta(seconds=next(ticks)),
        )
        return self.judge

    def end(self) -> None:
        """End them all."""
        self.judge.end()

    def lose(self, provider_batch_id: str, /) -> None:
        """Keep the results no longer."""
        self.judge.lose_results(provider_batch_id)


def test_batches_may_end_at_once() -> None:
    """Most tests need not wait."""
    judge = ScriptedBatchJudge(lambda _: "VERDICT: A")

    created = judge.create(QUERIES)

    assert judge.retrieve(created.provider_batch_id).has_ended
    assert judge.asked == list(QUERIES)


def test_a_scripted_batch_counts_what_failed() -> None:
    """The counts are what an ended batch is recorded with."""
    reasons = iter(["errored", "rejected", "expired", "canceled"])
    judge = ScriptedBatchJudge(lambda query: NoReply(query.query_key, next(reasons), "scripted"))  # type: ignore[arg-type]  # each is one of the reasons

    state = judge.retrieve(judge.create(QUERIES).provider_batch_id)

    assert state.n_succeeded == 0
    assert (state.n_errored, state.n_canceled, state.n_expired) == (2, 1, 1)


def test_a_batch_may_be_accepted_and_nobody_told() -> None:
    """The case that pays twice, were it sent again."""
    judge = ScriptedBatchJudge(lambda _: "VERDICT: A")
    judge.fail_next(BatchUncertain("cut"), accepts=True)

    with pytest.raises(BatchUncertain):
        judge.create(QUERIES)

    assert [state.n_queries for state in judge.created_since(START)] == [len(QUERIES)]


@pytest.mark.parametrize("error", [BatchRefused("too large"), SpendLimitReached("of May")])
def test_a_batch_may_be_refused(error: BatchRefused | SpendLimitReached) -> None:
    """Then there is none, and the next goes well."""
    judge = ScriptedBatchJudge(lambda _: "VERDICT: A")
    judge.fail_next(error, accepts=False)

    with pytest.raises(type(error)):
        judge.create(QUERIES)

    assert list(judge.created_since(START)) == []
    assert judge.create(QUERIES).n_queries == len(QUERIES)
