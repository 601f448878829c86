"""The fields of a row as values: each is what is asked for, or the row is no battle.

A CSV has only texts, and empty ones for what it does not know; JSON and Parquet have numbers, and
null or NaN.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from commands.errors import place_and_fault
from ledger.events.imports import Source, Winner

Fields: TypeAlias = Mapping[str, object]
_EVEN: Final = 0.5  # the preference that is for neither


class BattleRow(NamedTuple):
    """Two entrants compared on one prompt, by a judge or by people."""

    model_a: str
    model_b: str
    winner: Winner
    pref: float | None  # that b is better: 0 is a, 1/2 a tie, 1 is b; None: not said
    question_id: str | None  # battles of one prompt have the same
    source: Source
    judge_model: str | None
    weight: float = 1.0


class BadRow(NamedTuple):
    """A row that is no battle, and why."""

    line: int  # from 1; in a Parquet file or an array, the row
    why: str


class Record(NamedTuple):
    """A row of a file as its kind of file says it, with no meaning yet."""

    line: int  # as above
    fields: Fields


Records: TypeAlias = Iterable[Record | BadRow]
Reader: TypeAlias = Callable[[Records], Iterator[BattleRow | BadRow]]
"""Says what records mean in one format; what is bad already stays so."""

Mapper: TypeAlias = Callable[[Fields], Iterable[BattleRow]]


class InvalidFields(Exception):
    """A row's fields are no battle; the message says which field, and what is wrong with it."""


def row_by_row(mapper: Mapper) -> Reader:
    """Return the reader of a format whose rows mean something each by itself.

    Args:
        mapper: Gives the battles of a row, none to leave it out, or raises Unmapped.
    """

    def read(records: Records) -> Iterator[BattleRow | BadRow]:
        for record in records:
            if isinstance(record, BadRow):
                yield record
                continue
            try:
                rows = tuple(map(_require_consistent, mapper(record.fields)))
            except InvalidFields as error:
                yield BadRow(record.line, str(error))
            else:
                yield from rows

    return read


def _require_consistent(row: BattleRow) -> BattleRow:
    if row.model_a == row.model_b:
        raise InvalidFields(f"{row.model_a!r} battles itself")
    if row.winner == "no verdict" and row.pref is not None:
        raise InvalidFields(f"there is no verdict, and yet a preference: {row.pref!r}")
    if row.pref is not None and _contradicts(row.pref, row.winner):
        raise InvalidFields(
            f"winner is {row.winner}, and yet pref is {row.pref!r}: it is how probably b is better"
        )
    return row


def _contradicts(pref: float, winner: Winner) -> bool:
    """Say whether a preference is for who lost; a tie may be called at any."""
    return (winner == "model_a" and pref > _EVEN) or (winner == "model_b" and pref < _EVEN)


Choice = TypeVar("Choice", bound=str)
_N_SHOWN: Final = 60  # characters of a value that is wrong


def text(fields: Fields, name: str) -> str:
    """Return a text that must be there; a whole number, as ids may be, is its digits.

    Raises:
        InvalidFields: It is missing, empty or something else.
    """
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value and _is_unicode(value):
        return value
    raise InvalidFields(f"{name} is {shorten(value)}, and must be a text")


def optional_text(fields: Fields, name: str) -> str | None:
    """Return a text, or None where there is none.

    Raises:
        InvalidFields: It is something else.
    """
    return None if is_missing(fields.get(name)) else text(fields, name)


def optional_number(fields: Fields, name: str) -> float | None:
    """Return a finite number, or None where there is none.

    Raises:
        InvalidFields: It is something else.
    """
    value = fields.get(name)
    if is_missing(value):
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidFields(f"{name} is {shorten(value)}, and must be a number")
    return number


def optional_share(fields: Fields, name: str) -> float | None:
    """Return a number from 0 to 1, or None where there is none.

    Raises:
        InvalidFields: It is something else.
    """
    share = optional_number(fields, name)
    if share is not None and not 0 <= share <= 1:
        raise InvalidFields(f"{name} is {shorten(fields[name])}, and must be from 0 to 1")
    return share


def one_of(fields: Fields, name: str, choices: Sequence[Choice]) -> Choice:
    """Return which of the choices a field is.

    Raises:
        InvalidFields: It is none of them.
    """
    value = fields.get(name)
    for choice in choices:
        if value == choice:
            return choice
    raise InvalidFields(f"{name} is {shorten(value)}, and must be one of {', '.join(choices)}")


def _is_unicode(value: str) -> bool:
    """Say whether a text can be written: JSON can say halves of characters."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def is_missing(value: object) -> bool:
    """Say whether a field says nothing."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def shorten(value: object) -> str:
    """Return a value as Python writes it, or its beginning."""
    spelt = repr(value)
    return spelt if len(spelt) <= _N_SHOWN else f"{spelt[:_N_SHOWN]}..."


Meaning = TypeVar("Meaning")
Shape = TypeVar("Shape")


def mapped_value(fields: Fields, name: str, meanings: Mapping[str, Meaning]) -> Meaning:
    """Return what a field's word means.

    Raises:
        InvalidFields: It is no word that has a meaning.
    """
    return meanings[one_of(fields, name, tuple(meanings))]


def structured(fields: Fields, name: str, shape: type[Shape]) -> Shape:
    """Return a field that holds more than one value.

    Raises:
        InvalidFields: It is missing, or of another shape.
    """
    try:
        return msgspec.convert(fields.get(name), shape)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise InvalidFields(f"{name}{place}: {why}") from error
