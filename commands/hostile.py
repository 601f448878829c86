"""Text that models or people wrote, made safe to show: it may hold escapes, markup or formulas."""

import json
import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, bidi marks, separators
_FORMULA: Final = ("=", "+", "-", "@", "\t")


def shown(text: str) -> str:
    """Return text whose invisible characters are spelled out; line breaks and tabs stay."""
    return "".join(
        character.encode("unicode_escape").decode() if _is_hidden(character) else character
        for character in text
    )


def shown_json(text: str) -> str:
    """Return JSON whose invisible characters are escaped; it says the same."""
    return "".join(
        json.dumps(character)[1:-1] if _is_hidden(character) else character for character in text
    )


def one_line(text: str) -> str:
    """Return shown text on one line."""
    return " ".join(shown(text).split())


def csv_cell(text: str) -> str:
    """Return shown text that no spreadsheet reads as a formula."""
    safe = shown(text)
    return f"'{safe}" if safe.startswith(_FORMULA) else safe


def _is_hidden(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in _HIDDEN
