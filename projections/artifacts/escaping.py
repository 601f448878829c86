"""Escape texts of people and models: invisible characters, and formulas of spreadsheets."""

import json
import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, bidi marks, separators

_LAYOUT: Final = str.maketrans("", "", "\n\t")


def escaped(text: str) -> str:
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


def escaped_json(text: str) -> str:
    """Return the same JSON with invisible characters escaped."""
    return "".join(
        json.dumps(character)[1:-1] if is_hidden(character) else character for character in text
    )


def one_line(text: str) -> str:
    """Return escaped text on one line."""
    return " ".join(escaped(text).split())


_FORMULA: Final = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20", "\t", "\r", "\n")


def guarded(text: str) -> str:
    """Return a text for a CSV cell that no spreadsheet reads as a formula; `unguarded` undoes it.

    An apostrophe goes before what could be a formula, and before a text that looks guarded already.
    """
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def unguarded(cell: str) -> str:
    """Return the text of a CSV cell without the apostrophe that guards it."""
    return cell[1:] if cell.startswith("'") and guarded(cell[1:]) == cell else cell


def csv_cell(text: str) -> str:
    """Return escaped text that no spreadsheet reads as a formula."""
    safe = escaped(text)
    return safe if safe.startswith("'") else guarded(safe)


_MARKUP: Final = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"})


def markdown_text(text: str) -> str:
    """Return escaped text on one line that Markdown shows as it is."""
    return one_line(text).translate(_MARKUP)
