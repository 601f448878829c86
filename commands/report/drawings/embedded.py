"""Drawings inside the report's page: a bar with its interval, its scale, a map, a diagram.

Each has a title and a description; what it shows stands in a table, too.
"""

from collections.abc import Iterator, Sequence
from math import log10
from typing import Final, NamedTuple, TypeAlias

from markupsafe import Markup

from commands.report.drawings.panels import ConfidenceBin, calibration_panel
from commands.report.drawings.svg import (
    MARGIN,
    Drawing,
    RoundScale,
    dot,
    interval,
    line,
    path,
    picture,
    scale_of,
    text,
)

_WIDTH: Final = 240  # of bars


def interval_bar(scale: RoundScale, value: float, low: float | None, high: float | None) -> Drawing:
    """Draw a rating and its interval on a scale that all bars share."""
    title, left, right = f"{value:.0f}", None, None
    if low is not None and high is not None:
        title = f"{value:.0f}, interval from {low:.0f} to {high:.0f}"
        left, right = scale.at(low, _WIDTH), scale.at(high, _WIDTH)
    about = f"On a scale from {scale.low:g} to {scale.high:g}, the same for all entrants."
    track = line(MARGIN, 7, _WIDTH - MARGIN, 7, "track")
    parts = (track, *interval(scale.at(value, _WIDTH), left, right, 7))
    return picture(_WIDTH, 14, title, about, parts, "bar")


def axis(scale: RoundScale) -> Drawing:
    """Draw the scale of the bars."""
    marks = [(scale.at(tick, _WIDTH), f"{tick:g}") for tick in scale.ticks]
    labels = (text(x, 9, said, _anchor(x)) for x, said in marks)
    ticks = (line(x, 11, x, 14, "tick") for x, _ in marks)
    title = f"Scale from {scale.low:g} to {scale.high:g}"
    return picture(_WIDTH, 14, title, "Ratings by Bradley-Terry.", (*labels, *ticks), "bar")


def _anchor(x: float) -> str:
    if x <= MARGIN:
        return "start"
    return "end" if x >= _WIDTH - MARGIN else "middle"


class Spot(NamedTuple):
    """An entrant on the map."""

    number: int  # its place in the leading table
    name: str
    x: float  # what a response takes
    y: float  # its rating
    is_frontier: bool  # significantly better than all that are as cheap or cheaper


_MAP: Final = (640, 336)
_PLOT: Final = (56, 32, 620, 286)  # left, top, right, bottom
_LOWEST: Final = _PLOT[3] + 14  # of a name: just above what the axis is marked with
_ROW: Final = 17  # of labels
_CHARACTER: Final = 7.2  # of a label, in pixels
_Placed: TypeAlias = tuple[Spot, float, float]


def value_map(spots: Sequence[Spot], unit: str, ticks: Sequence[tuple[float, str]]) -> Drawing:
    """Draw ratings against what a response takes, on a logarithmic scale.

    Args:
        spots: The entrants.
        unit: Of what a response takes.
        ticks: Values with their labels; the first and the last are the ends.
    """
    left, top, right, bottom = _PLOT
    scale = scale_of(spot.y for spot in spots)
    if scale is None:
        return Markup("")
    first, last = log10(ticks[0][0]), log10(ticks[-1][0])

    def across(value: float) -> float:
        return round(left + (log10(value) - first) / (last - first) * (right - left), 1)

    def upwards(value: float) -> float:
        return bottom - scale.at(value, bottom - top, 8)

    def parts() -> Iterator[Drawing]:
        for value in scale.ticks:
            y = upwards(value)
            yield line(left, y, right, y, "grid")
            yield text(left - 8, y + 4, f"{value:g}", "end")
        for value, label in ticks:
            x = across(value)
            yield line(x, bottom, x, bottom + 5, "tick")
            yield text(x, bottom + 20, label)
        yield text((left + right) / 2, bottom + 42, unit)
        yield text(0, top - 18, "rating", "start")
        placed = [(spot, across(spot.x), round(upwards(spot.y), 1)) for spot in spots]
        yield path(sorted((x, y) for spot, x, y in placed if spot.is_frontier), "frontier")
        for spot, x, y in placed:
            kind = "best" if spot.is_frontier else "spot"
            yield dot(x, y, 10, kind)
            yield text(x, y, str(spot.number), kind=f"in {kind}")
        yield from _labels(placed)

    about = f"Higher is better, further left is cheaper; {unit}. The table below has the numbers."
    return picture(*_MAP, "Rating against what a response takes", about, parts(), "map")


def _labels(placed: Sequence[_Placed]) -> Iterator[Drawing]:
    """Write each name beside its spot, moved down as far as something is in the way.

    A name for which there is no room above the axis is left out: its spot has a number.
    """
    taken = [(x - 11, x + 11, y + 4) for _, x, y in placed]
    for spot, x, y in sorted(placed, key=lambda one: one[2]):
        wide = _CHARACTER * len(spot.name)
        is_right = x + 12 + wide <= _MAP[0]
        start = x + 12 if is_right else x - 12 - wide
        down = y + 20 if is_right else y - 12  # where the line, which only rises, does not pass
        while any(_overlap((start, start + wide, down), other) for other in taken):
            down += _ROW
        if down > _LOWEST:
            continue
        taken.append((start, start + wide, down))
        beside, anchor = (12, "start") if is_right else (-12, "end")
        yield text(x + beside, down, spot.name, anchor, "label name")


def _overlap(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < _ROW


def reliability(bins: Sequence[ConfidenceBin], name: str) -> Drawing:
    """Draw how often an entrant is right against how sure it is, below whose name it stands."""
    width, height, drawn = calibration_panel("", "Share correct", bins)
    about = "Each dot is a bin of responses; the larger, the more. On the line it is calibrated."
    size = round(width), round(height)
    return picture(*size, f"Calibration of {name}", about, [drawn], "square")
