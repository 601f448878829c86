"""Which words of two texts differ."""

import re
from difflib import SequenceMatcher
from typing import Final, TypeAlias

_WORD: Final = re.compile(r"\S+")
_MOST_WORDS: Final = 5_000  # comparing takes the square of it

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Where words stand in a text: from a character to before another."""


def differing(a: str, b: str) -> tuple[Spans, Spans]:
    """Return the words of each text that the other lacks at that place; none of very long texts."""
    in_a, in_b = ([*_WORD.finditer(text)] for text in (a, b))
    if max(len(in_a), len(in_b)) > _MOST_WORDS:
        return (), ()
    words_a, words_b = ([word[0] for word in words] for words in (in_a, in_b))
    changes = [
        (a_from, a_to, b_from, b_to)
        for what, a_from, a_to, b_from, b_to in SequenceMatcher(
            None, words_a, words_b, autojunk=False
        ).get_opcodes()
        if what != "equal"
    ]
    return (
        tuple(word.span() for start, end, _, _ in changes for word in in_a[start:end]),
        tuple(word.span() for _, _, start, end in changes for word in in_b[start:end]),
    )
