"""Write a figure as one self-contained SVG file, for a paper, a slide or a page."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, assert_never

from markupsafe import Markup

from commands.runs.report.drawings.chart import (
    CalibrationPanel,
    Chart,
    CurvePanel,
    GridPanel,
    IntervalPanel,
    Panel,
)
from commands.runs.report.drawings.panels import (
    Block,
    calibration_block,
    curve_block,
    grid_block,
    intervals_block,
    wide,
)
from commands.runs.report.drawings.svg_parts import (
    Drawing,
    RoundScale,
    described,
    scale_of,
    text,
)

_WIDEST: Final = 800  # of a row of panels, unless one alone is wider
_EDGE: Final = 20
_TITLE: Final = 44
_BETWEEN: Final = 28
_LARGER: Final = 1.25  # a title's letters against a label's
_THEME: Final = re.compile(r":root \{(.*?)\}", re.DOTALL)
_COLOUR: Final = re.compile(r"--([\w-]+): ([^;]+);")
_USED: Final = re.compile(r"var\(--([\w-]+)\)")
_SHADES: Final = range(-5, 6)
_SHAPES: Final = """\
text { font: 13px Helvetica, Arial, sans-serif; font-variant-numeric: tabular-nums; }
.title { font-size: 16px; font-weight: 600; }
.head { font-weight: 600; }
.label { font-size: 12px; }
.range { stroke-width: 5; stroke-opacity: .45; }
.at { stroke-width: 9; stroke-linecap: round; }
.curve { fill: none; stroke-width: 1.5; }
.diagonal { stroke-dasharray: 3 3; }
"""
_COLOURS: Final = """\
.page { fill: var(--card); }
text { fill: var(--ink); }
.label { fill: var(--soft); }
.grid { stroke: var(--line); }
.tick, .diagonal { stroke: var(--soft); }
.range, .cap, .at, .curve { stroke: var(--accent); }
.dot { fill: var(--accent); }
""" + "".join(f".h{n} {{ fill: var(--h{n}); }}\n" for n in _SHADES)


def as_svg(chart: Chart) -> str:
    """Return a figure as SVG: it has a title and a description, and asks nothing of anybody."""
    rows = [*_rows(_blocks(chart.panels))]
    widest = max((_width(row) for row in rows), default=0)
    width = round(max(widest, _LARGER * wide(chart.title)) + 2 * _EDGE)
    heights = [max(block.height for block in row) for row in rows]
    height = round(_TITLE + sum(heights) + _BETWEEN * max(len(rows) - 1, 0) + _EDGE)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    page = f'<rect class="page" width="{width}" height="{height}"/>'
    title = text(_EDGE, 30, chart.title, "start", "title")
    parts = (
        described(chart.title, chart.about),
        f"<style>\n{_style()}</style>",
        page,
        title,
        *_placed(rows, heights),
    )
    return "\n".join((head, *parts, "</svg>\n"))


def _blocks(panels: Sequence[Panel]) -> Iterator[Block]:
    scales = _scales(panels)
    for panel in panels:
        match panel:
            case IntervalPanel():
                yield intervals_block(panel, scales[panel.axis])
            case GridPanel():
                yield grid_block(panel)
            case CalibrationPanel():
                yield calibration_block(panel)
            case CurvePanel():
                yield curve_block(panel)
            case _:
                assert_never(panel)


def _scales(panels: Iterable[Panel]) -> dict[str, RoundScale | None]:
    """Return one scale for all intervals of an axis."""
    ends: dict[str, list[float]] = {}
    for panel in panels:
        if isinstance(panel, IntervalPanel):
            known = (end for each in panel.rows for end in each[1:] if end is not None)
            ends.setdefault(panel.axis, []).extend(known)
    return {axis: scale_of(values) for axis, values in ends.items()}


def _rows(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Put blocks beside one another as far as there is room."""
    row: list[Block] = []
    for block in blocks:
        if row and _width([*row, block]) > _WIDEST:
            yield row
            row = []
        row.append(block)
    if row:
        yield row


def _width(row: Sequence[Block]) -> float:
    return sum(block.width for block in row) + _BETWEEN * (len(row) - 1)


def _placed(rows: Iterable[Sequence[Block]], heights: Iterable[float]) -> Iterator[Drawing]:
    y = float(_TITLE)
    for row, height in zip(rows, heights, strict=True):
        x = float(_EDGE)
        for block in row:
            yield Markup('<g transform="translate({:g} {:g})">\n{}\n</g>').format(x, y, block.drawn)
            x += block.width + _BETWEEN
        y += height + _BETWEEN


@cache
def _style() -> str:
    """Return the style: light, and dark for who prefers that.

    Colours stand in it as they are, since programs that turn SVG into PDF know no variables.
    """
    page = files("commands.runs.report").joinpath("templates", "style.css").read_text("utf-8")
    light, dark, *_ = (dict(_COLOUR.findall(theme)) for theme in _THEME.findall(page))
    in_light, in_dark = _coloured(light), _coloured(light | dark)
    return f"{_SHAPES}{in_light}@media (prefers-color-scheme: dark) {{\n{in_dark}}}\n"


def _coloured(colours: Mapping[str, str]) -> str:
    return _USED.sub(lambda used: colours[used[1]], _COLOURS)
