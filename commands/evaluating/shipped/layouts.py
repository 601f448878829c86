"""`choices` and `rollout`: questions of any data set, whose fields the settings name."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

from commands.entrants.chats import Chat, Turn, user_turn
from commands.errors import ConfigurationError, first_lines
from commands.evaluating.samples import Inference
from commands.evaluating.shipped._fields import (
    LETTERS,
    LabelledChoices,
    answer_index,
    choices_of,
    constant_or_fields,
    text_of,
    value_of,
)
from commands.evaluating.shipped._questions import ChoiceQuestion, ContextChoices
from commands.evaluating.shipped._tables import DataRow, DataTable, read_table, split_files
from commands.evaluating.shipped.bank import contains_answer
from commands.evaluating.shipped.items import AskedQuestion, DividedRollout
from commands.evaluating.values import RolloutItem
from commands.importing.formats.files import OpenParquet
from commands.settings.sections import UserPath

Made = TypeVar("Made")
_BETWEEN: Final = "\n\n"  # examples


class LayoutParameters(BaseModel):
    """Where the questions are, and the names of their fields; a name can be a Jinja template."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: UserPath
    split: str | None = None
    question: str = "question"
    answer: str = "answer"
    subject: str | None = None
    shots: NonNegativeInt = 0
    shots_file: UserPath | None = None
    bos: bool = True

    def table(self, folder: Path, open_parquet: OpenParquet) -> DataTable:
        """Read the questions."""
        return read_table(split_files(folder / self.file, self.split), open_parquet)

    def examples(
        self, folder: Path, open_parquet: OpenParquet, shown: Callable[[DataRow], Chat]
    ) -> Callable[[Mapping[str, object]], Chat]:
        """Return what gives the turns before a row's question: examples of its subject, if any.

        Raises:
            ConfigurationError: There is no file of examples, or it has too few.
        """
        if not self.shots:
            return lambda _: ()
        if self.shots_file is None:
            raise ConfigurationError([f"shots is {self.shots}; say shots_file, which has examples"])
        table = read_table(split_files(folder / self.shots_file, None), open_parquet)
        by_subject: dict[object, list[Chat]] = {}
        for row, turns in zip(table.rows, made_of(table, shown).values(), strict=True):
            by_subject.setdefault(self.subject_of(row.fields), []).append(turns)

        def before(fields: Mapping[str, object]) -> Chat:
            subject = self.subject_of(fields)
            chosen = by_subject.get(subject, [])[: self.shots]
            if len(chosen) < self.shots:
                where = f"{self.shots_file} has {len(chosen)} examples"
                of = f" of {subject!r}" if self.subject else ""
                raise ValueError(f"shots is {self.shots}, but {where}{of}")
            return tuple(turn for turns in chosen for turn in turns)

        return before

    def subject_of(self, fields: Mapping[str, object]) -> str:
        """Return the subject that a row belongs to; empty without subjects.

        Raises:
            ValueError: The row has no such field.
        """
        return text_of(self.subject, fields) if self.subject else ""


class ChoiceParameters(LayoutParameters):
    """Parameters of `choices`."""

    choices: str | tuple[str, ...] = "choices"
    answers: Literal["letters", "texts"] = "letters"


class RolloutParameters(LayoutParameters):
    """Parameters of `rollout`."""

    choices: str | tuple[str, ...] | None = None
    answers: Literal["texts", "letters", "numbers"] = "texts"
    max_new_tokens: PositiveInt | None = None  # None: by the kind of answer


def made_of(table: DataTable, make: Callable[[DataRow], Made]) -> dict[str, Made]:
    """Return what is made of each row, by its label.

    Raises:
        ConfigurationError: A row has a fault; all are listed, each with its line.
    """
    made, faults = {}, []
    for row in table.rows:
        try:
            made[row.label] = make(row)
        except ValueError as error:
            faults.append(f"{row.place}: {error}")
    if faults:
        raise ConfigurationError([*first_lines(faults, len(faults), "fault")])
    return made


class _Question(NamedTuple):
    text: str
    choices: tuple[str, ...]
    correct: int


def lettered(
    fields: Mapping[str, object], parameters: ChoiceParameters | RolloutParameters
) -> _Question:
    """Return a row's question with its choices listed by letter, and the letters as choices.

    Raises:
        ValueError: A field is missing, or does not make sense.
    """
    question, found, correct = _asked(fields, parameters)
    letters = tuple(LETTERS[: len(found)])
    lines = (f"{letter}. {text}" for letter, text in zip(letters, found, strict=True))
    return _Question("\n".join([question, *lines]), letters, correct)


def _asked(
    fields: Mapping[str, object], parameters: ChoiceParameters | RolloutParameters
) -> _Question:
    names = parameters.choices
    if names is None:
        raise ValueError("`choices` is missing: it names the field of the choices")
    if isinstance(names, str):
        found = choices_of(names, fields)
    else:
        found = LabelledChoices(constant_or_fields(names, fields))
    if not 2 <= len(found.texts) <= len(LETTERS):  # noqa: PLR2004  # one alone is always right
        raise ValueError(f"there are {len(found.texts)} choices; it takes 2 to {len(LETTERS)}")
    if not all(found.texts):
        raise ValueError("a choice is empty")
    correct = answer_index(value_of(parameters.answer, fields), found)
    return _Question(text_of(parameters.question, fields), found.texts, correct)


class ChoicesLayout(ContextChoices):
    """Comparison of the letters' log-likelihoods behind the listed choices, or of the choices'."""

    def __init__(self, *, folder: Path, open_parquet: OpenParquet, **parameters: Any) -> None:  # noqa: ANN401  # checked by ChoiceParameters
        """Read the questions."""
        chosen = ChoiceParameters(**parameters)

        def asked(row: DataRow) -> _Question:
            if chosen.answers == "texts":
                return _asked(row.fields, chosen)
            found = lettered(row.fields, chosen)
            return found._replace(text=f"{found.text}\nAnswer:")

        def shown(row: DataRow) -> Chat:
            found = asked(row)
            return _example(found.text, " ", found.choices[found.correct])

        before = chosen.examples(folder, open_parquet, shown)

        def whole(row: DataRow) -> ChoiceQuestion:
            text, choices, correct = asked(row)
            return ChoiceQuestion((*before(row.fields), *user_turn(text)), choices, correct)

        table = chosen.table(folder, open_parquet)
        super().__init__(made_of(table, whole), bos=chosen.bos)
        if chosen.subject:
            self.divided([*made_of(table, lambda row: chosen.subject_of(row.fields)).values()])


def _example(question: str, between: str, answer: str) -> Chat:
    return Turn("user", question, between), Turn("assistant", answer, _BETWEEN)


_LETTER: Final = re.compile(
    r"""(?is:.*?\banswer\s*(?:is\b|:))?\W*  # anything before the letter
    ([A-Z]|[a-z](?=[.):]|\W*$))\b  # not an article""",
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_N_NEW: Final = {"texts": 64, "letters": 16, "numbers": 256}  # tokens that an answer may have


class RolloutLayout(DividedRollout):
    """Rollout whose answer is a letter, the last number, or holds the words of the expected one."""

    def __init__(self, *, folder: Path, open_parquet: OpenParquet, **parameters: Any) -> None:  # noqa: ANN401  # checked by RolloutParameters
        """Read the questions."""
        chosen = RolloutParameters(**parameters)
        self._answers = chosen.answers
        self._n_new = chosen.max_new_tokens or _N_NEW[chosen.answers]
        self.bos = chosen.bos

        def asked(row: DataRow) -> RolloutItem:
            if chosen.answers == "letters":
                text, letters, correct = lettered(row.fields, chosen)
                return RolloutItem(f"{text}\nAnswer with the letter alone.", letters[correct])
            expected = text_of(chosen.answer, row.fields)
            if chosen.answers == "numbers" and not (expected := last_number(expected)):
                raise ValueError(f"{chosen.answer} has no number")
            return RolloutItem(text_of(chosen.question, row.fields), expected)

        def shown(row: DataRow) -> Chat:
            return _example(asked(row).prompt, "\n", text_of(chosen.answer, row.fields))

        before = chosen.examples(folder, open_parquet, shown)

        def whole(row: DataRow) -> AskedQuestion:
            prompt, expected = asked(row)
            return AskedQuestion((*before(row.fields), *user_turn(prompt)), expected)

        table = chosen.table(folder, open_parquet)
        super().__init__(made_of(table, whole))
        if chosen.subject:
            self.divided([*made_of(table, lambda row: chosen.subject_of(row.fields)).values()])

    def clean(self, y_hat: str) -> str:
        """Return the answer's letter, its last number, or the whole; "" if there is none."""
        if self._answers == "letters":
            found = _LETTER.match(y_hat)
            return found[1].upper() if found else ""
        return last_number(y_hat) if self._answers == "numbers" else y_hat.strip()

    def check(self, y: str, y_hat: str) -> bool:
        """Return whether letters or numbers are equal, or the words of the expected text there."""
        return contains_answer(y_hat, y) if self._answers == "texts" else y == y_hat

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self._n_new


def last_number(text: str) -> str:
    """Return the last number of a text, as `-1234.5`; "" if it has none."""
    found = _NUMBER.findall(text)
    return f"{Decimal(found[-1].replace(',', '')).normalize():f}" if found else ""
