"""Escape what people and models wrote: what nobody sees, formulas of spreadsheets."""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, bidi marks, separators

_LAYOUT: Final = str.maketrans("", "", "\n\t")


def shown(text: str) -> str:
    """Return text with invisible characters escaped; line breaks and tabs stay."""
    if text.translate(_LAYOUT).isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if is_hidden(character) else character
        for character in text
    )


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible, or may change how others are shown."""
    return character not in "\n\t" and unicodedata.category(character) in _HIDDEN


_FORMULA: Final = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20", "\t", "\r", "\n")


def guarded(text: str) -> str:
    """Return a text for a CSV cell that no spreadsheet reads as a formula; `unguarded` undoes it.

    An apostrophe goes before what could be a formula, and before a text that looks guarded already.
    """
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def unguarded(cell: str) -> str:
    """Return the text of a CSV cell without the apostrophe that guards it."""
    return cell[1:] if cell.startswith("'") and guarded(cell[1:]) == cell else cell
