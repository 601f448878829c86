"""Fields in another program's words and shapes."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from commands.battle_readers.fields import one_of
from commands.battle_readers.row import Fields, Unmapped
from commands.validation import place_and_fault

Meaning = TypeVar("Meaning")
Shape = TypeVar("Shape")


def meaning_of(fields: Fields, name: str, meanings: Mapping[str, Meaning]) -> Meaning:
    """Return what a field's word means.

    Raises:
        Unmapped: It is no word that has a meaning.
    """
    return meanings[one_of(fields, name, tuple(meanings))]


def shaped(fields: Fields, name: str, shape: type[Shape]) -> Shape:
    """Return a field that holds more than one value.

    Raises:
        Unmapped: It is missing, or of another shape.
    """
    try:
        return msgspec.convert(fields.get(name), shape)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise Unmapped(f"{name}{place}: {why}") from error
