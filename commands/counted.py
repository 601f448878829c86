"""Counts in words, and lists that are not too long for a sentence."""

from collections.abc import Sequence
from typing import Final

MOST_NAMED: Final = 6  # in a sentence


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return "1 run", "2 runs", "3 queries"."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural or f'{noun}s'}"


def named(entrants: Sequence[str]) -> str:
    """Name entrants, but no crowd of them."""
    shown = ", ".join(entrants[:MOST_NAMED])
    n_more = len(entrants) - MOST_NAMED
    return shown if n_more <= 0 else f"{shown} and {n_more} more"
