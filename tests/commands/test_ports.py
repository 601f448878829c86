"""The offline implementations of the ports, held to the contracts of the real ones."""

from datetime import UTC, datetime, timedelta

import pytest

from commands.backends._reference_judge import ReferenceJudge
from commands.errors import BatchRefused, BatchUncertain, SpendLimitReached
from commands.ports import GenerationFailure, GenerationTask, LocalJudge, NoReply, Reply
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.commands import echo
from tests.support.builders.events import key
from tests.support.contracts import (
    QUERIES,
    TASKS,
    BatchJudgeContract,
    GeneratorContract,
    JudgeContract,
)
from tests.support.scripted import ScriptedBatchJudge, ScriptedGenerator, ScriptedJudge, answered


class TestReferenceJudge(JudgeContract):
    """The judge of a demonstration without a network."""

    def make(self) -> LocalJudge:
        """Return a judge with the band of the defaults."""
        return ReferenceJudge(tie_band=1.0)


class TestScriptedJudge(JudgeContract):
    """The judge of rehearsals."""

    def make(self) -> LocalJudge:
        """Return a judge that prefers the longer response."""
        return ScriptedJudge(longer)


class TestScriptedGenerator(GeneratorContract):
    """The generator of rehearsals, one task at a time."""

    def make(self) -> ScriptedGenerator:
        """Return a generator that echoes."""
        return ScriptedGenerator(echo)


class TestScriptedGeneratorInBatches(GeneratorContract):
    """The same, four tasks at a time, of which some fail."""

    def make(self) -> ScriptedGenerator:
        """Return a generator that cannot answer as `tuned`."""
        return ScriptedGenerator(base_only, batch=4)


def longer(query: JudgeQuery) -> str:
    """Find the longer response better."""
    assert isinstance(query, PairQuery)
    return "VERDICT: A" if len(query.shown_a) > len(query.shown_b) else "VERDICT: B"


def base_only(task: GenerationTask) -> str | GenerationFailure:
    """Answer as `base` only."""
    if task.entrant.entrant_id == "base":
        return echo(task)
    return GenerationFailure(task.response_key, "out_of_memory", "16 GiB were not enough")


@pytest.mark.parametrize(("batch", "sizes"), [(1, [1] * 6), (4, [4, 2]), (10, [6])])
def test_a_scripted_generator_yields_batches_of_its_size(batch: int, sizes: list[int]) -> None:
    """A rehearsal of a kill needs to know what was in flight."""
    generator = ScriptedGenerator(echo, batch=batch)

    batches = list(generator.generate(TASKS))

    assert [len(each) for each in batches] == sizes
    assert generator.asked == list(TASKS)


def test_a_scripted_judge_may_reply_whole_or_not_at_all() -> None:
    """Refusals and silence are rehearsed as well as verdicts."""
    refusal = Reply(key("refused"), "I cannot.", stop_reason="refusal", model="scripted")
    replies = iter([refusal, None, "VERDICT: A", None])
    judge = ScriptedJudge(lambda _: next(replies))

    given = list(answered(judge, QUERIES))

    assert given[0] == refusal
    whole = [each for each in given if isinstance(each, Reply)]
    assert [each.stop_reason for each in whole] == ["refusal", "end_turn"]
    assert judge.asked == list(QUERIES)


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
