"""MMLU, MedMCQA and MedQA: questions with lettered choices.

Each data set comes as a comparison of the letters' log-likelihoods and as a rollout that asks for
the letter.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import ClassVar, Final, NamedTuple

import msgspec
from pydantic import PositiveInt

from commands.evaluating import comparison, rollout, samples
from commands.evaluating.shipped._items import ListedEvaluation, check_arguments, read_lines

LETTERS = ascii_uppercase


class Question(NamedTuple):
    """A question with its choices."""

    text: str
    choices: tuple[str, ...]
    correct: int  # index of the correct choice


class QuestionLine(msgspec.Struct):
    """A line of a data set; a line that does not make sense is rejected when it is read."""

    def __post_init__(self) -> None:
        """Refuse a line without a correct choice, or with too few or too many choices."""
        _, choices, correct = self.parsed
        if not 2 <= len(choices) <= len(LETTERS):  # noqa: PLR2004  # two choices at least
            raise ValueError(f"there are {len(choices)} choices; there must be 2 to {len(LETTERS)}")
        if not 0 <= correct < len(choices):
            raise ValueError(f"the answer is {correct}; it must be from 0 to {len(choices) - 1}")

    @property
    def parsed(self) -> Question:
        """What is asked."""
        raise NotImplementedError


class MmluLine(QuestionLine):
    """cais/mmlu: the answer is an index from 0 (Hendrycks et al. 2021)."""

    question: str
    choices: tuple[str, ...]
    answer: int

    @property
    def parsed(self) -> Question:
        """What is asked."""
        return Question(self.question, self.choices, self.answer)


class MedMcqaLine(QuestionLine):
    """openlifescienceai/medmcqa: `cop` is an index from 0, or -1 if the answer is secret.

    In the authors' own files (Pal et al. 2022) it counts from 1: they are rejected at the first 4.
    """

    question: str
    opa: str
    opb: str
    opc: str
    opd: str
    cop: int

    @property
    def parsed(self) -> Question:
        """What is asked.

        Raises:
            ValueError: The correct choice is secret, or counted from 1.
        """
        if self.cop == -1:
            raise ValueError("cop is -1, as in the test split, whose answers are secret")
        if self.cop == 4:  # noqa: PLR2004  # of four choices
            raise ValueError("cop is 4: it must count from 0, as the release on Hugging Face does")
        return Question(self.question, (self.opa, self.opb, self.opc, self.opd), self.cop)


class _Option(msgspec.Struct):
    key: str
    value: str


class MedQaLine(QuestionLine):
    """GBaker/MedQA-USMLE-4-options, and MedQA (Jin et al. 2020): options by letter, or listed."""

    question: str
    options: dict[str, str] | list[_Option]
    answer_idx: str  # a letter

    @property
    def parsed(self) -> Question:
        """What is asked.

        Raises:
            ValueError: No choice has the answer's letter.
        """
        options = self.options
        if isinstance(options, list):
            options = {each.key: each.value for each in options}
        if self.answer_idx not in options:
            raise ValueError(f"answer_idx is {self.answer_idx!r}; the options are {[*options]}")
        return Question(self.question, (*options.values(),), [*options].index(self.answer_idx))


_LETTER: Final = re.compile(
    r"""(?is:.*?\banswer\s*(?:is\b|:))?\W*  # anything before the letter
    ([A-Z]|[a-z](?=[.):]|\W*$))\b  # not an article""",
    re.VERBOSE,
)


class LetterChoices(ListedEvaluation[Question], comparison.PerplexityComparisonEvaluation):
    """Comparison of the choices' letters after question, choices and `Answer:`."""

    layout: ClassVar[type[QuestionLine]]

    @check_arguments
    def __init__(self, *, folder: Path, path: Path) -> None:
        """Read the questions."""
        super().__init__(_questions(folder / path, self.layout))

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a question with its choices, the letters, and the index of the correct one."""
        question = self.items[index]
        letters = [f" {letter}" for letter in LETTERS[: len(question.choices)]]
        return f"{_with_letters(question)}\nAnswer:", letters, question.correct


class LetterRollout(ListedEvaluation[Question], rollout.RolloutEvaluation):
    """Rollout that asks for the letter; an answer is right if it begins with it or names it."""

    layout: ClassVar[type[QuestionLine]]

    @check_arguments
    def __init__(self, *, folder: Path, path: Path, max_new_tokens: PositiveInt = 16) -> None:
        """Read the questions."""
        super().__init__(_questions(folder / path, self.layout))
        self._n_new = max_new_tokens

    def get(self, index: int) -> tuple[str, str]:
        """Return a question with its choices, and the correct letter."""
        question = self.items[index]
        return (
            f"{_with_letters(question)}\nAnswer with the letter alone.",
            LETTERS[question.correct],
        )

    def clean(self, y_hat: str) -> str:
        """Return the letter in "B", "(b) ...", "**B.** ..." or "The answer is B"; else ""."""
        found = _LETTER.match(y_hat)
        return found[1].upper() if found else ""

    def check(self, y: str, y_hat: str) -> bool:
        """Return whether it is the correct letter."""
        return y == y_hat

    def max_new_tokens(self, inference: samples.Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self._n_new


class MmluChoices(LetterChoices):
    """MMLU by log-likelihood."""

    layout = MmluLine


class MmluRollout(LetterRollout):
    """MMLU by generated answers."""

    layout = MmluLine


class MedMcqaChoices(LetterChoices):
    """MedMCQA by log-likelihood."""

    layout = MedMcqaLine


class MedMcqaRollout(LetterRollout):
    """MedMCQA by generated answers."""

    layout = MedMcqaLine


class MedQaChoices(LetterChoices):
    """MedQA by log-likelihood."""

    layout = MedQaLine


class MedQaRollout(LetterRollout):
    """MedQA by generated answers."""

    layout = MedQaLine


def _questions(path: Path, layout: type[QuestionLine]) -> Mapping[str, Question]:
    return {source: row.parsed for source, row in read_lines(path, layout).items()}


def _with_letters(question: Question) -> str:
    choices = zip(LETTERS, question.choices, strict=False)
    return "\n".join([question.text, *(f"{letter}. {choice}" for letter, choice in choices)])
