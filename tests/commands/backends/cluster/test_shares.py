"""Work that several processes share: each piece once, what goes together in one place."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from commands.backends.cluster.shares import Backends, ShareActor, chunks, n_tokens
from commands.backends.huggingface.worker import load_key
from commands.errors import WeightsError
from commands.ports import Continuation, GeneratedText, GenerationTask
from tests.support.builders.events import entrant, key
from tests.support.scripted import ScriptedGenerator, ScriptedReader

ROSTER = [entrant(name, dtype=dtype) for name in "ab" for dtype in ("float32", "bfloat16")]
TASKS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=40)


def tasks_of(drawn: list[tuple[int, int]]) -> list[GenerationTask]:
    """Return a task of its own for each entrant and length drawn."""
    return [
        GenerationTask(key(str(n)), ROSTER[who], length * "x", 0)
        for n, (who, length) in enumerate(drawn)
    ]


@given(TASKS, st.integers(1, 4000))
def test_every_task_is_in_one_chunk_of_its_load(drawn: list[tuple[int, int]], budget: int) -> None:
    """A chunk that needs two loads would load twice wherever it is done."""
    tasks = tasks_of(drawn)

    cut = list(chunks(tasks, budget))

    assert Counter(each.response_key for chunk in cut for each in chunk) == Counter(
        each.response_key for each in tasks
    )
    loads = [{load_key(each.entrant) for each in chunk} for chunk in cut]
    assert all(len(same) == 1 for same in loads)
    changes = sum(first != second for first, second in pairwise(loads))
    assert changes == max(0, len(set.union(set(), *loads)) - 1)  # one load after the other


@given(TASKS, st.integers(1, 4000))
def test_a_chunk_keeps_to_its_budget_and_wastes_none(
    drawn: list[tuple[int, int]], budget: int
) -> None:
    """Padding counts; a single task may be longer."""
    for chunk in chunks(tasks_of(drawn), budget):
        widths = [n_tokens(each) for each in chunk]
        assert widths == sorted(widths, reverse=True)
        assert len(chunk) == 1 or len(chunk) * widths[0] <= budget


def test_texts_of_one_context_stay_in_one_chunk() -> None:
    """They are read together, the context once."""
    passages = [
        Continuation(f"{context} {n}", ROSTER[0], context, n * "long ")
        for n in range(9)
        for context in ("one", "two", "")
    ]

    cut = [{each.context or each.key for each in chunk} for chunk in chunks(passages, 40)]

    assert len(cut) > 2
    assert sum(map(len, cut)) == len(set.union(*cut)) == 2 + 9


def test_a_failure_keeps_what_was_done_before_it() -> None:
    """It may have taken an hour."""

    def answer(task: GenerationTask) -> str:
        if task.prompt_text == "torn":
            raise WeightsError(Path("weights"), "torn", "mend it")
        return "yes"

    def make() -> Backends:
        return ScriptedGenerator(answer), ScriptedReader(lambda _: 0.0)

    owed = [GenerationTask(key(said), ROSTER[0], said, 0) for said in ("whole", "torn", "whole 2")]
    batches, failure = ShareActor(make).share("generate", owed)

    [[done]] = batches
    assert isinstance(done, GeneratedText)
    assert (done.response_key, failure) == (key("whole"), "weights: torn; mend it")
