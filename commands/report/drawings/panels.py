"""The panels of figures, each drawn as a block of SVG of its own size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from markupsafe import Markup

from commands.report.drawings.svg import (
    Drawing,
    RoundScale,
    dot,
    interval,
    line,
    path,
    scale_of,
    text,
)
from commands.report.text import decimal
from commands.report.text import interval as interval_between
from projections.artifacts.escaping import escaped

_CHARACTER: Final = 7.4  # of a text, in pixels
_LONGEST: Final = 32  # characters of a name; longer ones lose their middle
_HEADING: Final = 26
_ROW: Final = 24  # of an interval
_AXIS: Final = 44  # below a scale: its numbers and its name
_BARS: Final = 380  # the width of a scale
_GAP: Final = 16


class Block(NamedTuple):
    """A drawn panel and its size."""

    width: float
    height: float
    drawn: Drawing


def wide(said: str) -> float:
    """Return about how wide a text is: no font is known here."""
    return _CHARACTER * sum(1 + (east_asian_width(each) in "WF") for each in said)


def _widest(texts: Iterable[str]) -> float:
    return max(map(wide, texts), default=0)


def _short(name: str) -> str:
    """Return a name on one line, without its middle where it is too long."""
    said = " ".join(escaped(name).split())
    if len(said) <= _LONGEST:
        return said
    half = _LONGEST // 2
    return f"{said[:half]}\N{HORIZONTAL ELLIPSIS}{said[1 - half :]}"


class NamedEstimate(NamedTuple):
    """A named value and its interval; None: it is not known."""

    name: str
    value: float | None
    low: float | None
    high: float | None


def intervals_panel(
    heading: str,
    axis: str,
    estimates: Sequence[NamedEstimate],
    scale: RoundScale | None,
    digits: int,
) -> Block:
    """Draw each estimate with its interval, and its numbers beside it."""
    names = [_short(estimate.name) for estimate in estimates]
    values = [decimal(estimate.value, digits) for estimate in estimates]
    between = [_between(estimate, digits) for estimate in estimates]
    left = round(_widest(names) + _GAP)
    at_value = left + _BARS + _GAP + _widest(values)
    width = round(at_value + _GAP + _widest(between))
    top = _HEADING * bool(heading)
    bottom = top + _ROW * len(names)

    def parts() -> Iterator[Drawing]:
        yield from _heading(heading)
        if scale is not None:
            yield from _across(scale, left, top, bottom, axis)
        for n, (_, value, *ends) in enumerate(estimates):
            y = top + _ROW * n + _ROW / 2
            yield text(0, y + 4.5, names[n], "start", "name")
            yield text(at_value, y + 4.5, values[n], "end", "number")
            yield text(width, y + 4.5, between[n], "end", "label")
            if scale is not None and value is not None:
                low, high = (end if end is None else left + scale.at(end, _BARS) for end in ends)
                yield from interval(left + scale.at(value, _BARS), low, high, y)

    return _block(width, bottom + _AXIS, parts())


def _across(
    scale: RoundScale, left: float, top: float, bottom: float, axis: str
) -> Iterator[Drawing]:
    """Draw a scale across, with a line up from each of its numbers."""
    for tick in scale.ticks:
        x = left + scale.at(tick, _BARS)
        yield line(x, top, x, bottom, "grid")
        yield text(x, bottom + 16, f"{tick:.10g}")
    yield text(left + _BARS / 2, bottom + 34, axis)


def _between(estimate: NamedEstimate, digits: int) -> str:
    is_known = estimate.low is not None and estimate.high is not None
    return interval_between(estimate.low, estimate.high, digits) if is_known else ""


_CELL: Final = (48, 28)
_SLANT: Final = 0.7072  # of 45 degrees
SHADES: Final = 5
"""Of each of both colours of a heat map; 0 is neutral."""


class HeatCell(NamedTuple):
    """A number on a colour: from -5, blue, over 0 to 5, orange."""

    text: str
    shade: int
    detail: str = ""
    battle_id: str = ""  # of the battle that it shows, if it shows one


class HeatMap(NamedTuple):
    """Numbers by row and column; None: there is none."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[HeatCell | None, ...], ...]


def square_map(order: Sequence[str], cells: Mapping[tuple[str, str], HeatCell]) -> HeatMap:
    """Return what rows and columns of the same names have to do with each other."""
    rows = (tuple(cells.get((row, column)) for column in order) for row in order)
    return HeatMap(tuple(order), tuple(order), tuple(rows))


def sweep_map(columns: Iterable[str], rated: Mapping[str, Sequence[float]]) -> HeatMap:
    """Return ratings under each K as a heat map: orange above their mean, and blue below."""
    ratings = [rating for of_one in rated.values() for rating in of_one]
    middle = sum(ratings) / max(1, len(ratings))
    reach = max((abs(rating - middle) for rating in ratings), default=0) or 1.0
    return HeatMap(
        tuple(rated),
        tuple(columns),
        tuple(
            tuple(HeatCell(f"{rating:.0f}", _shade((rating - middle) / reach)) for rating in of_one)
            for of_one in rated.values()
        ),
    )


def shade_of(share: float | None) -> int:
    """Return the colour of a share: neutral at a half."""
    return 0 if share is None else _shade(2 * (share - 0.5))


def _shade(balance: float) -> int:
    return round(balance * SHADES)


def heat_panel(heading: str, heat: HeatMap, *, across: str, legend: str) -> Block:
    """Draw a heat map with its numbers; headings slant where they are wider than a column."""
    wide_cell, high_cell = _CELL
    rows, columns = ([*map(_short, names)] for names in (heat.rows, heat.columns))
    left = round(max(_widest(rows), wide("Entrant")) + _GAP)
    is_slanted = _widest(columns) > wide_cell - 6
    high = (_widest(columns) * _SLANT if is_slanted else 0) + 20
    top = round(_HEADING * bool(heading) + high + 18)
    right, bottom = left + wide_cell * len(columns), top + high_cell * len(rows)

    def parts() -> Iterator[Drawing]:
        yield from _heading(heading)
        yield text(0, top - 8, "Entrant", "start")
        yield text(left, top - high - 6, across, "start")
        for n, name in enumerate(columns):
            x = left + wide_cell * (n + 0.5)
            yield _slanted(x, top - 8, name) if is_slanted else text(x, top - 8, name, kind="name")
        for i, name in enumerate(rows):
            y = top + high_cell * i
            yield text(0, y + high_cell / 2 + 4.5, name, "start", "name")
            for j, cell in enumerate(heat.cells[i]):
                if cell is not None:
                    x = left + wide_cell * j
                    yield _tile(x, y, cell.shade)
                    middle = x + wide_cell / 2, y + high_cell / 2 + 4.5
                    yield text(*middle, cell.text, kind="number")
        yield text(left, bottom + 20, legend, "start")

    ends = (left + wide_cell * (n + 0.5) + wide(name) * _SLANT for n, name in enumerate(columns))
    width = max(right, *ends, left + wide(legend), left + wide(across))
    return _block(width, bottom + 28, parts())


def _slanted(x: float, y: float, name: str) -> Drawing:
    turned = Markup('<g transform="translate({} {}) rotate(-45)">{}</g>')
    return turned.format(x, y, text(0, 0, name, "start", "name"))


def _tile(x: float, y: float, shade: int) -> Drawing:
    tile = Markup('<rect class="h{}" x="{}" y="{}" width="{}" height="{}" rx="3"/>')
    return tile.format(shade, x + 1, y + 1, _CELL[0] - 2, _CELL[1] - 2)


_SIDE: Final = 170
_LEFT: Final = 36
_QUARTERS: Final = (0, 0.25, 0.5, 0.75, 1)


ConfidenceBin: TypeAlias = tuple[float, float, int]
"""Responses of about one confidence: how sure, how often right, and how many."""


def calibration_panel(heading: str, upwards: str, bins: Sequence[ConfidenceBin]) -> Block:
    """Draw how often an entrant is right against how sure it is; on the diagonal it is honest."""
    top = (_HEADING if heading else 6) + 22
    right, bottom = _LEFT + _SIDE, top + _SIDE
    most = max((n for *_, n in bins), default=1)

    def at(confidence: float, correctness: float) -> tuple[float, float]:
        return round(_LEFT + confidence * _SIDE, 1), round(top + (1 - correctness) * _SIDE, 1)

    def parts() -> Iterator[Drawing]:
        yield from _heading(heading)
        yield text(0, top - 14, upwards, "start")
        for share in _QUARTERS:
            x, y = at(share, share)
            yield line(_LEFT, y, right, y, "grid")
            yield line(x, top, x, bottom, "grid")
            yield text(_LEFT - 6, y + 4, f"{share:g}", "end")
            yield text(x, bottom + 16, f"{share:g}")
        yield text(_LEFT + _SIDE / 2, bottom + 34, "Confidence (p_correct)")
        yield line(*at(0, 0), *at(1, 1), "diagonal")
        for confidence, correctness, n in bins:
            yield dot(*at(confidence, correctness), round(2 + 5 * (n / most) ** 0.5, 1))

    return _block(max(right + _GAP, wide(heading), wide(upwards)), bottom + _AXIS, parts())


_CURVE: Final = 180  # the height of its scale


class CurvePoint(NamedTuple):
    """A metric after so many steps of training, with its interval."""

    step: int
    value: float
    low: float | None
    high: float | None


def curve_panel(heading: str, axis: str, points: Sequence[CurvePoint]) -> Block:
    """Draw a metric over the steps of training, with its intervals."""
    across = scale_of(point.step for point in points)
    upwards = scale_of(end for point in points for end in point[1:])
    if across is None or upwards is None:
        return Block(0, 0, Markup(""))
    left = round(_widest(f"{tick:.10g}" for tick in upwards.ticks) + 8)
    top = _HEADING + 22
    bottom = top + _CURVE

    def at(step: int, value: float) -> tuple[float, float]:
        return left + across.at(step, _BARS), round(bottom - upwards.at(value, _CURVE), 1)

    def parts() -> Iterator[Drawing]:
        yield from _heading(heading)
        yield text(0, _HEADING + 8, axis, "start")
        for tick in upwards.ticks:
            y = bottom - upwards.at(tick, _CURVE)
            yield line(left, y, left + _BARS, y, "grid")
            yield text(left - 6, y + 4, f"{tick:.10g}", "end")
        yield from _across(across, left, top, bottom, "Training (steps)")
        yield path((at(point.step, point.value) for point in points), "curve")
        for step, value, low, high in points:
            if low is not None and high is not None:
                yield line(*at(step, low), *at(step, high), "range")
            yield dot(*at(step, value), 4)

    return _block(max(left + _BARS + _GAP, wide(heading), wide(axis)), bottom + _AXIS, parts())


def _heading(said: str) -> Iterator[Drawing]:
    if said:
        yield text(0, 14, said, "start", "head")


def _block(width: float, height: float, parts: Iterable[Drawing]) -> Block:
    return Block(round(width), height, Markup("\n").join(parts))
