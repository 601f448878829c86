"""Text that models or people wrote, made safe to show: it may hold escapes, markup or formulas."""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, bidi marks, separators
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def shown(text: str) -> str:
    """Return text whose invisible characters are spelled out; line breaks and tabs stay."""
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in _HIDDEN
        else character.encode("unicode_escape").decode()
        for character in text
    )


def one_line(text: str) -> str:
    """Return shown text on one line."""
    return " ".join(shown(text).split())


def csv_cell(text: str) -> str:
    """Return text that no spreadsheet reads as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
