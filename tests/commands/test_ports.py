"""The offline implementations of the ports, held to the contracts of the real ones."""

from datetime import UTC, datetime, timedelta

from commands.backends.reference_judge import ReferenceJudge
from commands.ports import GenerationFailure, GenerationTask, LocalJudge
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.commands import echo
from tests.support.contracts import (
    BatchJudgeContract,
    GeneratorContract,
    JudgeContract,
)
from tests.support.scripted import ScriptedBatchJudge, ScriptedGenerator, ScriptedJudge


class TestReferenceJudge(JudgeContract):
    """The judge of a demonstration without a network."""

    def make(self) -> LocalJudge:
        """Return a judge with the band of the defaults."""
        return ReferenceJudge()


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
