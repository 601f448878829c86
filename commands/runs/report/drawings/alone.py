"""A figure as one SVG file that carries its own style: for a paper, a slide, a page."""

from collections.abc import Iterable, Iterator, Sequence
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
from commands.runs.report.drawings.pieces import (
    Drawing,
    RoundScale,
    described,
    scale_of,
    text,
)
from commands.runs.report.drawings.style import style_alone

_WIDEST: Final = 800  # of a row of panels, unless one alone is wider
_EDGE: Final = 20
_TITLE: Final = 44
_BETWEEN: Final = 28
_LARGER: Final = 1.25  # a title's letters against a label's


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
        f"<style>\n{style_alone()}</style>",
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
