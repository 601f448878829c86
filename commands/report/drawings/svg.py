"""Pieces of SVG, written by hand: a round scale, lines, text, a bar with its interval, a dot.

Colours are classes of a style, so a drawing is light or dark as its reader prefers.
"""

from collections.abc import Iterable, Iterator
from math import ceil, floor, log10
from typing import Final, NamedTuple, TypeAlias

from markupsafe import Markup

from projections.artifacts.escaping import escaped

Drawing: TypeAlias = Markup
"""SVG that is safe to show: every text in it is escaped."""

MARGIN: Final = 4  # keeps dots whole at the ends of a scale
_STEPS: Final = (1, 2, 2.5, 5, 10)


class RoundScale(NamedTuple):
    """A linear scale with round ends."""

    low: float
    high: float
    step: float

    def at(self, value: float, width: float, margin: float = MARGIN) -> float:
        """Return where a value lies on a width."""
        share = (value - self.low) / (self.high - self.low)
        return round(margin + share * (width - 2 * margin), 1)

    @property
    def ticks(self) -> list[float]:
        """The round values on it."""
        n = round((self.high - self.low) / self.step)
        return [self.low + i * self.step for i in range(n + 1)]


def scale_of(values: Iterable[float | None], n_ticks: int = 4) -> RoundScale | None:
    """Return a scale that holds all values that are known; None: there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = min(known), max(known)
    if low == high:
        around = abs(low) / 20 or 0.5
        low, high = low - around, high + around
    rough = (high - low) / n_ticks
    power = 10 ** floor(log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * 0.999)
    first, last = floor(low / step), ceil(high / step)
    return RoundScale(first * step, max(last, first + 1) * step, step)


def picture(
    width: int, height: int, title: str, about: str, body: Iterable[Drawing], kind: str
) -> Drawing:
    """Return a drawing that stands in a page, with a title and a description."""
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" role="img">').format(kind, width, height)
    return head + described(title, about) + Markup("").join(body) + Markup("</svg>")


def described(title: str, about: str) -> Drawing:
    """Return the title and the description of a drawing, for who does not see it."""
    return Markup("<title>{}</title><desc>{}</desc>").format(escaped(title), escaped(about))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Drawing:
    """Draw a line."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)


def path(points: Iterable[tuple[float, float]], kind: str) -> Drawing:
    """Draw a line through points."""
    joined = " ".join(f"{x},{y}" for x, y in points)
    return Markup('<polyline class="{}" points="{}"/>').format(kind, joined)


def text(x: float, y: float, said: str, anchor: str = "middle", kind: str = "label") -> Drawing:
    """Write a text on one line."""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, x, y, anchor, escaped(said)
    )


def interval(value: float, low: float | None, high: float | None, y: float) -> Iterator[Drawing]:
    """Draw a value and its interval, given where they lie across."""
    if low is not None and high is not None:
        yield line(low, y, high, y, "range")
        yield from (line(end, y - 4, end, y + 4, "cap") for end in (low, high))
    yield line(value, y, value, y, "at")  # round where it ends: a dot of the same size anywhere


def dot(x: float, y: float, radius: float, kind: str = "dot") -> Drawing:
    """Draw a dot."""
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(kind, x, y, radius)
