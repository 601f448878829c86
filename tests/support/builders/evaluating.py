"""Small evaluations of each kind, made as settings make them, and entrants that take them."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import pytest

from commands.backends.wiring import READERS
from commands.errors import ConfigurationError, MissingExtra
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.likelihoods import (
    EncodingEvaluation,
    PerplexityComparisonEvaluation,
    PerplexityEvaluation,
)
from commands.evaluating.registry import EvaluationSources, table_evaluations
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference
from commands.ports import Continuation, GenerationFailure, GenerationTask, LikelihoodFailure
from commands.settings.sections import EvaluationSection
from ledger.events.registration import Entrant, Prompt
from tests.support.builders.events import entrant
from tests.support.scripted import ScriptedGenerator, ScriptedReader

Item = TypeVar("Item")


class Items(Generic[Item]):
    """A data set in memory."""

    def __init__(self, *items: Item) -> None:
        """Take the items."""
        self._items = items

    def __len__(self) -> int:
        """Count them."""
        return len(self._items)

    def get(self, index: int) -> Item:
        """Return an item."""
        return self._items[index]


class Capitals(Items[tuple[str, str]], RolloutEvaluation):
    """Capitals of countries: questions with their answers."""

    name = "capitals"

    def clean(self, y_hat: str) -> str:
        """Take the first line."""
        return y_hat.partition("\n")[0].strip()

    def check(self, y: str, y_hat: str) -> bool:
        """Compare whole."""
        return y == y_hat

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Allow a word."""
        return 4


class Endings(Items[tuple[str, Sequence[str], int]], PerplexityComparisonEvaluation):
    """Sentences to be ended: prefixes with continuations and the index of the right one."""

    name = "endings"


def altered(kind: Callable[..., Evaluation], *items: object, **attributes: object) -> Evaluation:
    """Return an evaluation with items and attributes that no type checker would let pass."""
    return type(kind.__name__, (kind,), attributes)(*items)  # type: ignore[arg-type,no-any-return]


class EndingsByPmi(Endings):
    """Sentences to be ended, the continuations weighed alone too."""

    asks_unconditional = True


class Letters(Items[str], PerplexityEvaluation):
    """Documents."""

    name = "letters"


class Echoes(Items[str], EncodingEvaluation):
    """Texts whose last letter is to be predicted."""

    name = "echoes"

    def clean(self, y_hat: str) -> str:
        """Take the last letter."""
        return y_hat[-1:]

    def check(self, x: str, y_hat: str) -> bool:
        """Compare with the last letter."""
        return x[-1:] == y_hat


def answering(
    answer: Callable[[GenerationTask], str | GenerationFailure], who: Entrant | None = None
) -> tuple[Inference, ScriptedGenerator]:
    """Return an entrant that answers by a function, and gives texts alone."""
    generator = ScriptedGenerator(answer, batch=2)
    return Inference(who or entrant("base"), lambda: generator, None), generator


def reading(
    weigh: Callable[[Continuation], float | LikelihoodFailure],
    who: Entrant | None = None,
    *,
    predict: Callable[[Continuation], str] = lambda passage: passage.text,
) -> tuple[Inference, ScriptedReader]:
    """Return an entrant that weighs texts by a function, and answers nothing."""
    reader = ScriptedReader(weigh, predict=predict, batch=3)
    silent = ScriptedGenerator(lambda _: "")
    return Inference(who or entrant("base"), lambda: silent, lambda: reader), reader


def no_tasks(section: EvaluationSection, folder: Path) -> Sequence[tuple[str, Evaluation]]:
    """Say that lm-evaluation-harness is not installed."""
    del section, folder
    raise MissingExtra("lm_eval", "lm-eval")


WITHOUT_TASKS: Final = READERS._replace(read_tasks=no_tasks)
Kind = TypeVar("Kind", bound=Evaluation)


def make_all(
    uses: str, folder: Path, bank: Sequence[Prompt] = (), **parameters: object
) -> tuple[Evaluation, ...]:
    """Return the evaluations that a table with the id "one" names."""
    section = EvaluationSection.model_validate(
        {"id": "one", "uses": uses, "parameters": parameters}
    )
    return table_evaluations(section, EvaluationSources(folder, bank, WITHOUT_TASKS))


def make(uses: str, folder: Path, bank: Sequence[Prompt] = (), **parameters: object) -> Evaluation:
    """Return the first of them."""
    return make_all(uses, folder, bank, **parameters)[0]


def made(
    uses: str, kind: type[Kind], folder: Path, bank: Sequence[Prompt] = (), **parameters: object
) -> Kind:
    """Return it, of the class that it should be of."""
    evaluation = make(uses, folder, bank, **parameters)
    assert isinstance(evaluation, kind)
    return evaluation


def refusals(
    uses: str, folder: Path, bank: Sequence[Prompt] = (), **parameters: object
) -> tuple[str, ...]:
    """Return why there is none, without the folder's name."""
    with pytest.raises(ConfigurationError) as caught:
        make(uses, folder, bank, **parameters)
    return tuple(fault.replace(f"{folder}/", "") for fault in caught.value.faults)


def write_lines(file: Path, *rows: object) -> Path:
    """Write a data set: a text stays as it is, all else becomes JSON."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    content = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file
