"""Drawings in SVG, written by hand: a bar with its interval, its scale, a map, a diagram.

Colours are classes of the page's style, so a drawing is light or dark as the page is. Each has a
title and a description; what it shows stands in a table, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, log10
from typing import Final, NamedTuple, TypeAlias

from markupsafe import Markup

from projections.artifacts.escaping import shown

Drawing: TypeAlias = Markup
"""SVG that is safe to show: every text in it is escaped."""

_WIDTH: Final = 240  # of bars
_STEPS: Final = (1, 2, 2.5, 5, 10)
_MARGIN: Final = 4


class RoundScale(NamedTuple):
    """A linear scale with round ends."""

    low: float
    high: float
    step: float

    def at(self, value: float, width: float, margin: float = _MARGIN) -> float:
        """Return where a value lies on a width."""
        share = (value - self.low) / (self.high - self.low)
        return round(margin + share * (width - 2 * margin), 1)

    @property
    def ticks(self) -> list[float]:
        """The round values on it."""
        n = round((self.high - self.low) / self.step)
        return [self.low + i * self.step for i in range(n + 1)]


def scale_of(values: Sequence[float], n_ticks: int = 4) -> RoundScale | None:
    """Return a scale that holds values; None: there are none."""
    if not values:
        return None
    low, high = min(values), max(values)
    rough = max(high - low, 1e-9) / n_ticks
    power = 10 ** floor(log10(rough))
    step = next(each * power for each in _STEPS if each * power >= rough * 0.999)
    first, last = floor(low / step), ceil(high / step)
    return RoundScale(first * step, max(last, first + 1) * step, step)


def _svg(width: int, height: int, title: str, about: str, *body: Drawing, kind: str) -> Drawing:
    head = Markup(
        '<svg class="{}" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>'
    ).format(kind, width, height, shown(title), shown(about))
    return head + Markup("").join(body) + Markup("</svg>")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Drawing:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "label") -> Drawing:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, x, y, anchor, shown(text)
    )


def interval_bar(scale: RoundScale, value: float, low: float | None, high: float | None) -> Drawing:
    """Draw a rating and its interval on a scale that all bars share."""
    x = scale.at(value, _WIDTH)
    title = f"{value:.0f}"
    parts = [_line(_MARGIN, 7, _WIDTH - _MARGIN, 7, "track")]
    if low is not None and high is not None:
        title = f"{value:.0f}, interval from {low:.0f} to {high:.0f}"
        left, right = scale.at(low, _WIDTH), scale.at(high, _WIDTH)
        parts.append(_line(left, 7, right, 7, "range"))
        parts += [_line(end, 3, end, 11, "cap") for end in (left, right)]
    parts.append(_line(x, 7, x, 7, "at"))  # round where it ends: a dot of the same size anywhere
    about = f"On a scale from {scale.low:g} to {scale.high:g}, the same for all entrants."
    return _svg(_WIDTH, 14, title, about, *parts, kind="bar")


def axis(scale: RoundScale) -> Drawing:
    """Draw the scale of the bars."""
    marks = [(scale.at(each, _WIDTH), f"{each:g}") for each in scale.ticks]
    labels = (_text(x, 9, text, _anchor(x)) for x, text in marks)
    ticks = (_line(x, 11, x, 14, "tick") for x, _ in marks)
    title = f"Scale from {scale.low:g} to {scale.high:g}"
    return _svg(_WIDTH, 14, title, "Ratings by Bradley-Terry.", *labels, *ticks, kind="bar")


def _anchor(x: float) -> str:
    if x <= _MARGIN:
        return "start"
    return "end" if x >= _WIDTH - _MARGIN else "middle"


class Spot(NamedTuple):
    """An entrant on the map."""

    number: int  # its place in the leading table
    name: str
    x: float  # what a response takes
    y: float  # its rating
    is_frontier: bool  # nobody cheaper is rated as high


_MAP: Final = (640, 320)
_PLOT: Final = (56, 16, 620, 270)  # left, top, right, bottom
_ROW: Final = 17  # of labels
_CHARACTER: Final = 7.2  # of a label, in pixels


def value_map(spots: Sequence[Spot], unit: str, ticks: Sequence[tuple[float, str]]) -> Drawing:
    """Draw ratings against what a response takes, on a logarithmic scale.

    Args:
        spots: The entrants.
        unit: Of what a response takes.
        ticks: Values with their labels; the first and the last are the ends.
    """
    left, top, right, bottom = _PLOT
    scale = scale_of([spot.y for spot in spots])
    if scale is None:
        return Markup("")
    first, last = log10(ticks[0][0]), log10(ticks[-1][0])

    def place(spot: Spot) -> tuple[float, float]:
        across = left + (log10(spot.x) - first) / (last - first) * (right - left)
        return round(across, 1), round(bottom - scale.at(spot.y, bottom - top, 8), 1)

    def frame() -> Iterator[Drawing]:
        for value in scale.ticks:
            y = bottom - scale.at(value, bottom - top, 8)
            yield _line(left, y, right, y, "grid")
            yield _text(left - 8, y + 4, f"{value:g}", "end")
        for value, label in ticks:
            x = round(left + (log10(value) - first) / (last - first) * (right - left), 1)
            yield _line(x, bottom, x, bottom + 5, "tick")
            yield _text(x, bottom + 20, label)
        yield _text((left + right) / 2, bottom + 42, unit)

    spotted = [(spot, *place(spot)) for spot in spots]
    frontier = sorted((x, y) for spot, x, y in spotted if spot.is_frontier)
    path = " ".join(f"{x},{y}" for x, y in frontier)
    line = Markup('<polyline class="frontier" points="{}"/>').format(path)
    about = f"Higher is better, further left is cheaper; {unit}. The table below has the numbers."
    body = (*frame(), line, *_marks(spotted), *_labels(spotted))
    return _svg(*_MAP, "Rating against what a response takes", about, *body, kind="map")


def _marks(spotted: Iterable[tuple[Spot, float, float]]) -> Iterator[Drawing]:
    for spot, x, y in spotted:
        kind = "best" if spot.is_frontier else "spot"
        yield Markup('<circle class="{}" cx="{}" cy="{}" r="10"/>').format(kind, x, y)
        yield _text(x, y, str(spot.number), kind=f"in {kind}")


def _labels(spotted: Sequence[tuple[Spot, float, float]]) -> Iterator[Drawing]:
    """Write each name beside its spot, moved down as far as something is in the way."""
    taken = [(x - 11, x + 11, y + 4) for _, x, y in spotted]
    for spot, x, y in sorted(spotted, key=lambda each: each[2]):
        wide = _CHARACTER * len(spot.name)
        is_right = x + 12 + wide <= _MAP[0]
        start = x + 12 if is_right else x - 12 - wide
        down = y + 20 if is_right else y - 12  # where the line, which only rises, does not pass
        while any(_overlap((start, start + wide, down), each) for each in taken):
            down += _ROW
        taken.append((start, start + wide, down))
        yield _text(
            x + (12 if is_right else -12),
            down,
            spot.name,
            "start" if is_right else "end",
            "label name",
        )


def _overlap(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < _ROW


class Share(NamedTuple):
    """A bin of a reliability diagram: how sure, how often right, and of how many."""

    sure: float
    right: float
    n: int


def reliability(bins: Sequence[Share], name: str) -> Drawing:
    """Draw how often an entrant is right against how sure it is; on the diagonal it is honest."""
    size, edge = 180, 24
    most = max((each.n for each in bins), default=1)

    def at(sure: float, right: float) -> tuple[float, float]:
        inner = size - 2 * edge
        return round(edge + sure * inner, 1), round(size - edge - right * inner, 1)

    ends = (*at(0, 0), *at(1, 1))
    dots = (
        Markup('<circle class="dot" cx="{}" cy="{}" r="{}"/>').format(
            *at(each.sure, each.right), round(2 + 5 * (each.n / most) ** 0.5, 1)
        )
        for each in bins
    )
    texts = (
        *(_text(edge, size - 8, "0", "start"), _text(size - edge, size - 8, "1", "end")),
        _text(size / 2, size - 8, "how sure"),
        _text(edge, 14, "how often right", "start"),
    )
    frame = (_line(edge, size - edge, size - edge, size - edge, "tick"), _line(*ends, "grid"))
    about = "Each dot is a bin of responses; the larger, the more. On the line it is calibrated."
    return _svg(size, size, f"Calibration of {name}", about, *frame, *dots, *texts, kind="square")
