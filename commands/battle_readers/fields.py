"""The fields of a row as values: each is what is asked for, or the row is no battle.

A CSV has only texts, and empty ones for what it does not know; JSON and Parquet have numbers, and
null or NaN.
"""

import math
from collections.abc import Sequence
from typing import Final, TypeVar

from commands.battle_readers.row import Fields, Unmapped

Choice = TypeVar("Choice", bound=str)
_N_SHOWN: Final = 60  # characters of a value that is wrong


def text(fields: Fields, name: str) -> str:
    """Return a text that must be there; a whole number, as ids may be, is its digits.

    Raises:
        Unmapped: It is missing, empty or something else.
    """
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value and _is_unicode(value):
        return value
    raise Unmapped(f"{name} is {shown(value)}, and must be a text")


def optional_text(fields: Fields, name: str) -> str | None:
    """Return a text, or None where there is none.

    Raises:
        Unmapped: It is something else.
    """
    return None if is_unknown(fields.get(name)) else text(fields, name)


def optional_number(fields: Fields, name: str) -> float | None:
    """Return a finite number, or None where there is none.

    Raises:
        Unmapped: It is something else.
    """
    value = fields.get(name)
    if is_unknown(value):
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise Unmapped(f"{name} is {shown(value)}, and must be a number")
    return number


def optional_share(fields: Fields, name: str) -> float | None:
    """Return a number from 0 to 1, or None where there is none.

    Raises:
        Unmapped: It is something else.
    """
    share = optional_number(fields, name)
    if share is not None and not 0 <= share <= 1:
        raise Unmapped(f"{name} is {shown(fields[name])}, and must be from 0 to 1")
    return share


def one_of(fields: Fields, name: str, choices: Sequence[Choice]) -> Choice:
    """Return which of the choices a field is.

    Raises:
        Unmapped: It is none of them.
    """
    value = fields.get(name)
    for choice in choices:
        if value == choice:
            return choice
    raise Unmapped(f"{name} is {shown(value)}, and must be one of {', '.join(choices)}")


def _is_unicode(value: str) -> bool:
    """Say whether a text can be written: JSON can say halves of characters."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def is_unknown(value: object) -> bool:
    """Say whether a field says nothing."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def shown(value: object) -> str:
    """Return a value as Python writes it, or its beginning."""
    spelt = repr(value)
    return spelt if len(spelt) <= _N_SHOWN else f"{spelt[:_N_SHOWN]}..."
