"""The panels of a figure that stands alone, each as a block of SVG of its own size."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from unicodedata import east_asian_width

from markupsafe import Markup

from commands.runs.report.drawings.chart import (
    CalibrationPanel,
    CurvePanel,
    CurvePoint,
    GridPanel,
    IntervalPanel,
    NamedEstimate,
)
from commands.runs.report.drawings.svg_parts import (
    Drawing,
    RoundScale,
    Square,
    dot,
    interval,
    line,
    scale_of,
    text,
)
from projections.artifacts.escaping import shown

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


def short(name: str) -> str:
    """Return a name on one line, without its middle where it is too long."""
    said = " ".join(shown(name).split())
    if len(said) <= _LONGEST:
        return said
    half = _LONGEST // 2
    return f"{said[:half]}\N{HORIZONTAL ELLIPSIS}{said[1 - half :]}"


def wide(said: str) -> float:
    """Return about how wide a text is: no font is known here."""
    return _CHARACTER * sum(1 + (east_asian_width(each) in "WF") for each in said)


def _widest(texts: Iterable[str]) -> float:
    return max(map(wide, texts), default=0)


def intervals_block(panel: IntervalPanel, scale: RoundScale | None) -> Block:
    """Draw each estimate with its interval, and its numbers beside it."""
    names = [short(each.name) for each in panel.rows]
    values = [_number(each.value, panel.digits) for each in panel.rows]
    between = [_between(each, panel.digits) for each in panel.rows]
    left = round(_widest(names) + _GAP)
    at_value = left + _BARS + _GAP + _widest(values)
    width = round(at_value + _GAP + _widest(between))
    top = _HEADING * bool(panel.heading)
    bottom = top + _ROW * len(names)

    def parts() -> Iterator[Drawing]:
        yield from _heading(panel.heading)
        if scale is not None:
            yield from _across(scale, left, top, bottom, panel.axis)
        for n, each in enumerate(panel.rows):
            y = top + _ROW * n + _ROW / 2
            yield text(0, y + 4.5, names[n], "start", "name")
            yield text(at_value, y + 4.5, values[n], "end", "number")
            yield text(width, y + 4.5, between[n], "end", "label")
            if scale is not None and each.value is not None:
                low, high = (_place(scale, end, left) for end in (each.low, each.high))
                yield from interval(left + scale.at(each.value, _BARS), low, high, y)

    return Block(width, bottom + _AXIS, _group(parts()))


def _place(scale: RoundScale, value: float | None, left: float) -> float | None:
    return None if value is None else left + scale.at(value, _BARS)


def _across(
    scale: RoundScale, left: float, top: float, bottom: float, axis: str
) -> Iterator[Drawing]:
    """Draw a scale across, with a line up from each of its numbers."""
    for tick in scale.ticks:
        x = left + scale.at(tick, _BARS)
        yield line(x, top, x, bottom, "grid")
        yield text(x, bottom + 16, f"{tick:.10g}")
    yield text(left + _BARS / 2, bottom + 34, axis)


def _number(value: float | None, digits: int) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.{digits}f}"


def _between(each: NamedEstimate, digits: int) -> str:
    if each.low is None or each.high is None:
        return ""
    return f"{each.low:.{digits}f} to {each.high:.{digits}f}"


_CELL: Final = (48, 28)
_SHADES: Final = 5
_SLANT: Final = 0.7072  # of 45 degrees


def grid_block(panel: GridPanel) -> Block:
    """Draw a heat map with its numbers; headings slant where they are wider than a column."""
    across, down = _CELL
    rows, columns = ([*map(short, names)] for names in (panel.rows, panel.columns))
    left = round(max(_widest(rows), wide(panel.down)) + _GAP)
    is_slanted = _widest(columns) > across - 6
    high = (_widest(columns) * _SLANT if is_slanted else 0) + 20
    top = round(_HEADING * bool(panel.heading) + high + 18)
    right, bottom = left + across * len(columns), top + down * len(rows)

    def parts() -> Iterator[Drawing]:
        yield from _heading(panel.heading)
        yield text(0, top - 8, panel.down, "start")
        yield text(left, top - high - 6, panel.across, "start")
        for n, name in enumerate(columns):
            x = left + across * (n + 0.5)
            yield _slanted(x, top - 8, name) if is_slanted else text(x, top - 8, name, kind="name")
        for i, name in enumerate(rows):
            y = top + down * i
            yield text(0, y + down / 2 + 4.5, name, "start", "name")
            for j, cell in enumerate(panel.cells[i]):
                if cell is not None:
                    x, shade = left + across * j, round(cell.shade * _SHADES)
                    yield _tile(x, y, shade)
                    yield text(x + across / 2, y + down / 2 + 4.5, cell.text, kind="number")
        yield text(left, bottom + 20, panel.legend, "start")

    ends = (left + across * (n + 0.5) + wide(name) * _SLANT for n, name in enumerate(columns))
    width = max(right, *ends, left + wide(panel.legend), left + wide(panel.across))
    return Block(round(width), bottom + 28, _group(parts()))


def _slanted(x: float, y: float, name: str) -> Drawing:
    turned = Markup('<g transform="translate({} {}) rotate(-45)">{}</g>')
    return turned.format(x, y, text(0, 0, name, "start", "name"))


def _tile(x: float, y: float, shade: int) -> Drawing:
    tile = Markup('<rect class="h{}" x="{}" y="{}" width="{}" height="{}" rx="3"/>')
    return tile.format(shade, x + 1, y + 1, _CELL[0] - 2, _CELL[1] - 2)


_SIDE: Final = 170
_QUARTERS: Final = (0, 0.25, 0.5, 0.75, 1)


def calibration_block(panel: CalibrationPanel) -> Block:
    """Draw a reliability diagram."""
    square = Square(_SIDE, 36, _HEADING + 22)

    def parts() -> Iterator[Drawing]:
        yield from _heading(panel.heading)
        yield text(0, _HEADING + 8, panel.upwards, "start")
        for share in _QUARTERS:
            (x, y), bottom = square.at(share, share), square.top + _SIDE
            yield line(square.left, y, square.left + _SIDE, y, "grid")
            yield line(x, square.top, x, bottom, "grid")
            yield text(square.left - 6, y + 4, f"{share:g}", "end")
            yield text(x, bottom + 16, f"{share:g}")
        yield text(square.left + _SIDE / 2, square.top + _SIDE + 34, "Confidence (p_correct)")
        yield from square.marks(panel.bins)

    width = max(square.left + _SIDE + _GAP, wide(panel.heading), wide(panel.upwards))
    return Block(round(width), square.top + _SIDE + _AXIS, _group(parts()))


_CURVE: Final = 180  # the height of its scale


def curve_block(panel: CurvePanel) -> Block:
    """Draw a metric over the steps of training, with its intervals."""
    ends = (each for point in panel.points for each in point[1:] if each is not None)
    across, upwards = scale_of([each.step for each in panel.points]), scale_of([*ends])
    if across is None or upwards is None:
        return Block(0, 0, Markup(""))
    left = round(_widest(f"{each:.10g}" for each in upwards.ticks) + 8)
    top = _HEADING + 22
    bottom = top + _CURVE

    def place(point: CurvePoint, value: float) -> tuple[float, float]:
        return left + across.at(point.step, _BARS), round(bottom - upwards.at(value, _CURVE), 1)

    def parts() -> Iterator[Drawing]:
        yield from _heading(panel.heading)
        yield text(0, _HEADING + 8, panel.axis, "start")
        for tick in upwards.ticks:
            y = bottom - upwards.at(tick, _CURVE)
            yield line(left, y, left + _BARS, y, "grid")
            yield text(left - 6, y + 4, f"{tick:.10g}", "end")
        yield from _across(across, left, top, bottom, "Training (steps)")
        path = " ".join("{},{}".format(*place(each, each.value)) for each in panel.points)
        yield Markup('<polyline class="curve" points="{}"/>').format(path)
        for each in panel.points:
            if each.low is not None and each.high is not None:
                yield line(*place(each, each.low), *place(each, each.high), "range")
            yield dot(*place(each, each.value), 4)

    width = max(left + _BARS + _GAP, wide(panel.heading), wide(panel.axis))
    return Block(round(width), bottom + _AXIS, _group(parts()))


def _heading(said: str) -> Iterator[Drawing]:
    if said:
        yield text(0, 14, said, "start", "head")


def _group(parts: Iterable[Drawing]) -> Drawing:
    return Markup("\n").join(parts)
