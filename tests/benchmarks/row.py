"""One row of the table: what was measured, against what, what is asked, and is it met."""

from math import inf
from typing import NamedTuple


class Demand(NamedTuple):
    """Bounds that a number is to keep."""

    lowest: float
    highest: float

    def admits(self, value: float) -> bool:
        """Say whether a number keeps them."""
        return self.lowest <= value <= self.highest

    def __str__(self) -> str:
        """Return them in words."""
        if self.highest == inf:
            return f"at least {self.lowest:,}"
        if self.lowest == -inf:
            return f"at most {self.highest:,}"
        return f"{self.lowest:,} to {self.highest:,}"


class Row(NamedTuple):
    """The table's cells, in the order of its columns."""

    benchmark: str
    figure: str
    baseline: str
    ratio: str
    asked: str
    met: str


def at_least(bound: float) -> Demand:
    """Ask that a number be no smaller."""
    return Demand(bound, inf)


def at_most(bound: float) -> Demand:
    """Ask that a number be no larger."""
    return Demand(-inf, bound)


def between(lowest: float, highest: float) -> Demand:
    """Ask that a number be neither smaller nor larger."""
    return Demand(lowest, highest)


def compared(
    benchmark: str, figure: str, baseline: str, ratio: float, asked: Demand | None = None
) -> Row:
    """Return a row whose demand is on a ratio; without a demand it is there to be known."""
    return Row(benchmark, figure, baseline, f"{ratio:.2f}", *_judged(ratio, asked))


def stated(benchmark: str, figure: str, value: float, asked: Demand | None = None) -> Row:
    """Return a row whose demand is on the number itself; it has no baseline."""
    return Row(benchmark, figure, "", "", *_judged(value, asked))


def per_second(rate: float) -> str:
    """Return a rate in words."""
    return f"{rate:,.0f} events/s"


def _judged(value: float, asked: Demand | None) -> tuple[str, str]:
    if asked is None:
        return "", ""
    return str(asked), "yes" if asked.admits(value) else "no"
