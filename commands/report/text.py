"""Format texts and numbers for people."""

from collections.abc import Sequence
from typing import Final

NOTHING: Final = "–"  # stands where there is no number  # noqa: RUF001


def points(value: float | None) -> str:
    """Return a rating as it is shown."""
    return NOTHING if value is None else f"{value:.0f}"


def percent(share: float | None) -> str:
    """Return a share as it is shown."""
    return NOTHING if share is None else f"{share:.0%}"


def decimal(value: float | None, digits: int | None = 2) -> str:
    """Return a number with a true minus sign; no digits: as many as it takes."""
    if value is None:
        return NOTHING
    return (f"{value:g}" if digits is None else f"{value:.{digits}f}").replace(
        "-", "\N{MINUS SIGN}"
    )


def interval(low: float | None, high: float | None, digits: int = 0) -> str:
    """Return two bounds, or nothing if one is not known."""
    if low is None or high is None:
        return NOTHING
    return f"{decimal(low, digits)} to {decimal(high, digits)}"


def listed(names: Sequence[str]) -> str:
    """Return names as people list them: a, b and c."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
