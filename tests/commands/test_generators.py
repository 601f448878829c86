"""Each task goes to what answers for its loader, and what no task needs is not made."""

from collections.abc import Callable

import pytest

from commands.entrants.generate import GeneratorByLoader
from commands.errors import MissingExtra
from commands.ports import GeneratedText, GenerationTask, Generator
from tests.builders import entrant, key
from tests.commands.contracts import GeneratorContract
from tests.support.scripted import ScriptedGenerator

HERE = GenerationTask(key("here"), entrant("base"), "What?", seed=0)
THERE = GenerationTask(key("there"), entrant("hosted", loader="endpoint", dtype=None), "?", seed=0)


def saying(text: str) -> Callable[[], Generator]:
    """Return what makes a generator that says this, whatever it is asked."""
    return lambda: ScriptedGenerator(lambda _: text)


def missing() -> Generator:
    """Lack what the generator needs."""
    raise MissingExtra("torch", "models")


def said(generator: Generator, *tasks: GenerationTask) -> dict[str, str]:
    """Return what was answered, by task."""
    results = [result for batch in generator.generate(tasks) for result in batch]
    return {each.response_key: each.text for each in results if isinstance(each, GeneratedText)}


class TestByLoader(GeneratorContract):
    """Both kinds in one."""

    def make(self) -> Generator:
        """Return one of each."""
        return GeneratorByLoader(saying("here"), saying("there"))


def test_a_task_is_answered_where_its_entrant_is() -> None:
    """A roster may have both: one's own weights against those that everybody uses."""
    both = GeneratorByLoader(saying("from here"), saying("from there"))

    assert said(both, HERE, THERE) == {key("here"): "from here", key("there"): "from there"}


def test_what_no_task_needs_need_not_be_installed() -> None:
    """Endpoints alone take no torch, and weights alone no client."""
    assert said(GeneratorByLoader(missing, saying("there")), THERE) == {key("there"): "there"}
    assert said(GeneratorByLoader(saying("here"), missing), HERE) == {key("here"): "here"}


def test_what_is_missing_is_told_before_anything_is_generated() -> None:
    """An hour of paid answers must not end in `pip install`."""
    answers = GeneratorByLoader(missing, saying("there")).generate([HERE, THERE])

    with pytest.raises(MissingExtra):
        next(answers)
