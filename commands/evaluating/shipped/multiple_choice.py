"""Questions with lettered choices, as MMLU put them: by weighing the letters, or by asking."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import ClassVar, Final, NamedTuple

import msgspec
from pydantic import PositiveInt

from commands.evaluating.comparison import PerplexityComparisonEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference
from commands.evaluating.shipped._items import ListedEvaluation, checked, read_lines

LETTERS = ascii_uppercase


class Question(NamedTuple):
    """A question, and what may be the answer."""

    text: str
    choices: tuple[str, ...]
    correct: int  # index of the right one


class Layout(msgspec.Struct):
    """A line; one that makes no sense is refused as it is read."""

    def __post_init__(self) -> None:
        """Refuse a question without an answer.

        Raises:
            ValueError: None of the choices is right, or there are too few or too many.
        """
        _, choices, correct = self.asked
        if not 2 <= len(choices) <= len(LETTERS):  # noqa: PLR2004  # else nothing is chosen
            raise ValueError(f"there are {len(choices)} choices, and must be 2 to {len(LETTERS)}")
        if not 0 <= correct < len(choices):
            raise ValueError(f"the answer is {correct}, and must be from 0 to {len(choices) - 1}")

    @property
    def asked(self) -> Question:
        """What is asked."""
        raise NotImplementedError


class Mmlu(Layout):
    """cais/mmlu: the answer is an index from 0 (Hendrycks et al. 2021)."""

    question: str
    choices: tuple[str, ...]
    answer: int

    @property
    def asked(self) -> Question:
        """What is asked."""
        return Question(self.question, self.choices, self.answer)


class MedMcqa(Layout):
    """openlifescienceai/medmcqa: cop is an index from 0 there, and -1 where it is kept secret.

    In the files of its authors (Pal et al. 2022) it is from 1: these are refused at their first 4.
    """

    question: str
    opa: str
    opb: str
    opc: str
    opd: str
    cop: int

    @property
    def asked(self) -> Question:
        """What is asked.

        Raises:
            ValueError: The right choice is not said, or counted from 1.
        """
        if self.cop == -1:
            raise ValueError("cop is -1, as in the test split, whose answers are secret")
        if self.cop == 4:  # noqa: PLR2004  # of four choices
            raise ValueError("cop is 4: it must count from 0, as the release on Hugging Face does")
        return Question(self.question, (self.opa, self.opb, self.opc, self.opd), self.cop)


class _Option(msgspec.Struct):
    key: str
    value: str


class MedQa(Layout):
    """GBaker/MedQA-USMLE-4-options, and MedQA (Jin et al. 2020): options by letter, or a list."""

    question: str
    options: dict[str, str] | list[_Option]
    answer_idx: str  # a letter

    @property
    def asked(self) -> Question:
        """What is asked.

        Raises:
            ValueError: No choice has the answer's letter.
        """
        options = self.options
        if isinstance(options, list):
            options = {each.key: each.value for each in options}
        if self.answer_idx not in options:
            raise ValueError(f"answer_idx is {self.answer_idx!r}, and there are {[*options]}")
        return Question(self.question, (*options.values(),), [*options].index(self.answer_idx))


_LETTER: Final = re.compile(
    r"""(?is:.*?\banswer\s*(?:is\b|:))?\W*  # what may stand before it
    ([A-Z]|[a-z](?=[.):]|\W*$))\b  # "a" that goes on is an article""",
    re.VERBOSE,
)


class LetterChoices(ListedEvaluation[Question], PerplexityComparisonEvaluation):
    """The letters of the choices are weighed behind question, choices and `Answer:`."""

    layout: ClassVar[type[Layout]]

    @checked
    def __init__(self, *, name: str, folder: Path, path: Path) -> None:
        """Read the questions."""
        super().__init__(name, _questions(folder / path, self.layout))

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a question with its choices, and the letters."""
        question = self.items[index]
        letters = [f" {letter}" for letter in LETTERS[: len(question.choices)]]
        return f"{_lettered(question)}\nAnswer:", letters, question.correct


class LetterRollout(ListedEvaluation[Question], RolloutEvaluation):
    """The letter is asked for; right is an answer that begins with it, or says that it is it."""

    layout: ClassVar[type[Layout]]

    @checked
    def __init__(
        self, *, name: str, folder: Path, path: Path, max_new_tokens: PositiveInt = 16
    ) -> None:
        """Read the questions."""
        super().__init__(name, _questions(folder / path, self.layout))
        self._n_new = max_new_tokens

    def get(self, index: int) -> tuple[str, str]:
        """Return a question with its choices, and the right letter."""
        question = self.items[index]
        return (
            f"{_lettered(question)}\nAnswer with the letter alone.",
            LETTERS[question.correct],
        )

    def clean(self, y_hat: str) -> str:
        """Return the letter in "B", "(b) ...", "**B.** ..." or "The answer is B"; else nothing."""
        found = _LETTER.match(y_hat)
        return found[1].upper() if found else ""

    def check(self, y: str, y_hat: str) -> bool:
        """Say whether it is the right letter."""
        return y == y_hat

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return how long an answer may be."""
        return self._n_new


class MmluChoices(LetterChoices):
    """MMLU by weighing."""

    layout = Mmlu


class MmluRollout(LetterRollout):
    """MMLU by asking."""

    layout = Mmlu


class MedMcqaChoices(LetterChoices):
    """MedMCQA by weighing."""

    layout = MedMcqa


class MedMcqaRollout(LetterRollout):
    """MedMCQA by asking."""

    layout = MedMcqa


class MedQaChoices(LetterChoices):
    """MedQA by weighing."""

    layout = MedQa


class MedQaRollout(LetterRollout):
    """MedQA by asking."""

    layout = MedQa


def _questions(path: Path, layout: type[Layout]) -> Mapping[str, Question]:
    return {source: row.asked for source, row in read_lines(path, layout).items()}


def _lettered(question: Question) -> str:
    choices = zip(LETTERS, question.choices, strict=False)
    return "\n".join([question.text, *(f"{letter}. {choice}" for letter, choice in choices)])
