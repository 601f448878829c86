"""The shipped offline implementations of the ports, held to the contracts."""

import pytest

from commands.backends._reference_judge import ReferenceJudge
from commands.ports import GenerationFailure, GenerationTask, Judge, Reply
from projections.verdicts.queries import JudgeQuery
from tests.builders import key
from tests.commands.builders import echo
from tests.commands.contracts import QUERIES, TASKS, GeneratorContract, JudgeContract
from tests.support.scripted import ScriptedGenerator, ScriptedJudge


class TestReferenceJudge(JudgeContract):
    """The judge of a demonstration without a network."""

    def make(self) -> Judge:
        """Return a judge with the band of the defaults."""
        return ReferenceJudge(tie_band=1.0)


class TestScriptedJudge(JudgeContract):
    """The judge of rehearsals."""

    def make(self) -> Judge:
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

    given = list(judge.answer(QUERIES))

    assert given[0] == refusal
    whole = [each for each in given if isinstance(each, Reply)]
    assert [each.stop_reason for each in whole] == ["refusal", "end_turn"]
    assert judge.asked == list(QUERIES)
