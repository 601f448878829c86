"""A format of battles, and checked access to the fields of an imported row.

A CSV file has texts only, and empty ones for missing values; JSON and Parquet have numbers, and
null or NaN for missing values.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from commands.errors import place_and_fault
from ledger.events.imports import ImportedBattle, Winner

Fields: TypeAlias = Mapping[str, object]
PROMPT_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "text": ("prompt", "text", "question", "instruction", "query", "user_input"),
    "messages": ("messages",),
    "turns": ("turns",),
    "gold_answer": (
        *("gold_answer", "gold", "reference", "ground_truth", "ground truth", "expected"),
        "answer",
    ),
    "prompt_id": ("prompt_id", "id"),
    "source": ("source",),
    "subject": ("subject", "topic"),
    "category": ("category", "dataset"),
}
"""The columns that may hold each field of a prompt, the first that is there."""
_EVEN: Final = 0.5  # a preference for neither


class BadRow(NamedTuple):
    """A row that becomes no battle, and why."""

    line: int  # from 1; in Parquet files and JSON arrays, the row
    why: str
    is_unrated: bool = False  # a battle that the program it comes from leaves out, too


class Record(NamedTuple):
    """The fields of a row, before a format interprets them."""

    line: int  # as above
    fields: Fields


class Sheet(NamedTuple):
    """A table's column names and rows."""

    header: Sequence[str]
    rows: Iterator[Record | BadRow]


Records: TypeAlias = Iterable[Record | BadRow]
Reader: TypeAlias = Callable[[Records], Iterator[ImportedBattle | BadRow]]
"""Turns records into battles by one format; bad rows are passed through."""


class InvalidFields(Exception):
    """A field of a row is missing or wrong; the message names it and says why."""


class Unrated(InvalidFields):
    """A row is a battle that the program it comes from does not rate; the message says why."""


def row_by_row(mapper: "Callable[[Cells], Iterable[ImportedBattle]]") -> Reader:
    """Return a format's reader; the mapper returns a row's battles, or raises InvalidFields."""

    def read(records: Records) -> Iterator[ImportedBattle | BadRow]:
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            try:
                rows = tuple(map(_require_consistent, mapper(Cells(record.fields))))
            except InvalidFields as error:
                yield BadRow(record.line, str(error), is_unrated=isinstance(error, Unrated))
            else:
                yield from rows

    return read


def _require_consistent(row: ImportedBattle) -> ImportedBattle:
    if row.model_a == row.model_b:
        raise InvalidFields(f"{row.model_a!r} battles itself")
    if row.pref is None:
        return row
    if row.winner == "no verdict":
        raise InvalidFields(f"winner is no verdict, but pref is {row.pref!r}")
    is_against = {"model_a": row.pref > _EVEN, "model_b": row.pref < _EVEN}
    if is_against.get(row.winner):  # a tie fits any preference
        raise InvalidFields(
            f"winner is {row.winner}, but pref, the probability that b is better, is {row.pref!r}"
        )
    return row


class BattleFormat(NamedTuple):
    """How to turn the rows of a program's files into battles, whatever the kind of file."""

    name: str
    read: Reader
    description: str  # for the help
    required: tuple[str, ...]  # fields that every row must have
    optional: tuple[str, ...] = ()  # fields that are read if present
    set_by_file: Callable[[Path], str] | None = None  # if the file name decides the set
    mapping_version: int = 1  # raise it when rows are interpreted differently
    or_required: tuple[str, ...] = ()  # fields that every row of another layout must have
    tells: tuple[str, ...] = ()  # where others need the same fields: each of these is its own

    @property
    def columns(self) -> frozenset[str]:
        """The fields that are read."""
        return frozenset((*self.required, *self.or_required, *self.optional))

    def missing_from(self, header: Collection[str]) -> tuple[str, ...]:
        """Return the required fields that are not there."""
        layouts = [each for each in (self.required, self.or_required) if each]
        missing = [tuple(name for name in layout if name not in header) for layout in layouts]
        return min(missing, key=len, default=())

    def is_told_by(self, header: Collection[str]) -> bool:
        """Say whether only the format's own files have such a header."""
        is_own = not self.tells or any(name in header for name in self.tells)
        return is_own and not self.missing_from(header)

    def set_of(self, file: Path) -> str:
        """Return the default set to import a file into."""
        return self.name if self.set_by_file is None else self.set_by_file(uncompressed(file))


def uncompressed(file: Path) -> Path:
    """Return the path of a file without .gz."""
    return file.with_suffix("") if file.suffix == ".gz" else file


Meaning = TypeVar("Meaning")
Shape = TypeVar("Shape")
_N_SHOWN: Final = 60  # characters of a wrong value in a message
_TRUTHS: Final = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


@dataclass(frozen=True)
class Cells:
    """A row's fields, read as what a battle needs.

    What is missing or of another kind than a method says raises `InvalidFields`; a method whose
    name begins with `optional` returns None for what is missing.
    """

    fields: Fields

    def lacks(self, name: str) -> bool:
        """Say whether a field says nothing."""
        return is_missing(self.fields.get(name))

    def text(self, name: str) -> str:
        """Return a required text; an integer, as ids may be, becomes its digits."""
        value = self.fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value:
            if is_unicode(value):
                return value
            raise InvalidFields(f"{name} is {shorten(value)}, which is not UTF-8")
        raise InvalidFields(f"{name} is {shorten(value)}, but must be a text")

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None."""
        return None if self.lacks(name) else self.text(name)

    def optional_number(
        self, name: str, must_be: str = "", fits: Callable[[float], bool] = lambda _: True
    ) -> float | None:
        """Return a finite number that fits, or None; `must_be` says in words what does."""
        value = self.fields.get(name)
        if is_missing(value):
            return None
        try:
            number = float(value) if isinstance(value, int | float | str) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise InvalidFields(f"{name} is {shorten(value)}, but must be a number")
        if not fits(number):
            raise InvalidFields(f"{name} is {shorten(value)}, but must be {must_be}")
        return number

    def optional_amount(self, name: str) -> float | None:
        """Return a number, 0 or more, or None."""
        return self.optional_number(name, "0 or more", lambda number: number >= 0)

    def optional_share(self, name: str) -> float | None:
        """Return a number from 0 to 1, or None."""
        return self.optional_number(name, "from 0 to 1", lambda number: 0 <= number <= 1)

    def optional_count(self, name: str) -> int | None:
        """Return a whole number, 0 or more, or None."""
        must_be = "a whole number, 0 or more"
        number = self.optional_number(name, must_be, lambda n: n >= 0 and n.is_integer())
        return None if number is None else int(number)

    def length(self, name: str) -> int | None:
        """Return how many characters a text has, or None if the field has no text."""
        text = self.fields.get(name)
        return len(text) if isinstance(text, str) else None

    def labels(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, or one text with semicolons between them; each once."""
        given = self.fields.get(name)
        cells = given if isinstance(given, list) else [given]
        texts = (Cells({name: cell}).optional_text(name) or "" for cell in cells)
        parts = (part.strip() for text in texts for part in text.split(";"))
        return tuple(dict.fromkeys(part for part in parts if part))

    def optional_truth(self, name: str) -> bool | None:
        """Return whether a field says true, or None; a CSV has words."""
        if self.lacks(name):
            return None
        value = self.fields[name]
        said = str(value).lower()
        if said not in _TRUTHS:
            raise InvalidFields(f"{name} is {shorten(value)}, but must be true or false")
        return _TRUTHS[said]

    def winner(self, name: str, meanings: Mapping[str, Winner]) -> Winner:
        """Return who won; other words that begin with "tie" are a tie, as `tie (inconsistent)`.

        FastChat's compute_agreement.py takes every vote that contains "tie" for one; a model's name
        may contain it, too.
        """
        value = self.fields.get(name)
        if isinstance(value, str) and value not in meanings and re.match(r"tie($|[ _(])", value):
            return "tie"
        return self.mapped_value(name, meanings)

    def mapped_value(self, name: str, meanings: Mapping[str, Meaning]) -> Meaning:
        """Return the value that a mapping gives for a field."""
        value = self.fields.get(name)
        if not isinstance(value, str) or value not in meanings:
            known = ", ".join(meanings)
            raise InvalidFields(f"{name} is {shorten(value)}, but must be one of {known}")
        return meanings[value]

    def structured(self, name: str, shape: type[Shape]) -> Shape:
        """Return a nested field, converted to a type."""
        try:
            return msgspec.convert(self.fields.get(name), shape)
        except msgspec.ValidationError as error:
            place, why = place_and_fault(error)
            raise InvalidFields(f"{name}{place}: {why}") from error


def is_unicode(value: str) -> bool:
    """Return whether UTF-8 can encode a text: JSON allows half surrogate pairs."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def is_missing(value: object) -> bool:
    """Return whether a value stands for a missing one."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def unpacked(value: object) -> object:
    """Return the list that a cell holds as JSON, as in a CSV; of any other cell itself."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, list) else value


def in_one_text(value: object) -> object:
    """Return the texts of a list as one, as MT-bench has references to its turns, some empty."""
    texts = value if isinstance(value, list) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        return value
    return "\n\n".join(text for text in texts if text.strip())


def said_of_prompt(fields: Fields, *, but: str = "") -> dict[str, object]:
    """Return the gold answer and the category that a row has of its prompt, in columns but one."""
    said: dict[str, object] = {}
    for field in ("gold_answer", "category"):
        for value in (fields.get(name) for name in PROMPT_COLUMNS[field] if name != but.casefold()):
            text = in_one_text(value)
            if isinstance(text, str) and text.strip():
                said.setdefault(field, text)
    return said


def shorten(value: object) -> str:
    """Return the repr of a value, cut to 60 characters."""
    spelt = repr(value)
    return spelt if len(spelt) <= _N_SHOWN else f"{spelt[:_N_SHOWN]}..."
