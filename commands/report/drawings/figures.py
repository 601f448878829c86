"""The figure of each table of results, as one self-contained SVG file: for a paper or a slide."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

from markupsafe import Markup

from commands.report.drawings.panels import (
    SHADES,
    Block,
    CurvePoint,
    HeatCell,
    NamedEstimate,
    calibration_panel,
    curve_panel,
    heat_panel,
    intervals_panel,
    shade_of,
    square_map,
    sweep_map,
    wide,
)
from commands.report.drawings.svg import Drawing, described, scale_of, text
from projections.results.columns import RowType
from projections.results.evaluations import CurveRow, MetricRow
from projections.results.judges import CalibrationRow
from projections.results.ratings import BradleyTerryRow, EloRow, WinRateRow

FigureRow: TypeAlias = Mapping[str, Any]  # as --json has them
ToFigure: TypeAlias = Callable[[str, Sequence[FigureRow]], str]
_SWEPT: Final = "k_"  # what the ratings under other K are called


def elo_figure(title: str, rows: Sequence[FigureRow]) -> str:
    """Draw Elo ratings with their intervals, or under each K of a sweep."""
    if any(key.startswith(_SWEPT) for key in rows[0]):
        swept = (_sweep(*group) for group in _by(rows, "dimension").items())
        return _figure(title, "Each number is a rating under one K.", swept)
    axis = "Elo rating (points); bar: 95 % interval"
    panels = _ratings(rows, ("rating", "ci95_low", "ci95_high"), axis)
    return _figure(title, "Dot: rating. Bar: 95 % interval. All on one scale.", panels)


def bradley_terry_figure(title: str, rows: Sequence[FigureRow]) -> str:
    """Draw Bradley-Terry ratings with their intervals."""
    axis = "Bradley-Terry rating (Elo points); bar: interval"
    panels = _ratings(rows, ("rating", "low", "high"), axis)
    return _figure(title, "Dot: rating. Bar: interval. All on one scale.", panels)


def _ratings(rows: Sequence[FigureRow], keys: Sequence[str], axis: str) -> Iterator[Block]:
    scale = scale_of(row[key] for row in rows for key in keys)
    for dimension, group in _by(rows, "dimension").items():
        estimates = [NamedEstimate(row["entrant"], *(row[key] for key in keys)) for row in group]
        yield intervals_panel(dimension, axis, estimates, scale, 0)


def _sweep(dimension: str, rows: Sequence[FigureRow]) -> Block:
    swept = [key for key in rows[0] if key.startswith(_SWEPT)]
    rated = {
        row["entrant"]: [row[key] for key in swept] for row in rows if row[swept[0]] is not None
    }
    middle = _mean([rating for ratings in rated.values() for rating in ratings])
    return heat_panel(
        dimension,
        sweep_map([key.removeprefix(_SWEPT) for key in swept], rated),
        across="K (points, the most a match changes)",
        legend=f"Elo rating (points). Orange: above {middle:.0f}, blue: below.",
    )


def win_rates_figure(title: str, rows: Sequence[FigureRow]) -> str:
    """Draw the share of each entrant against each other as a heat map, the best on top."""
    panels = (_shares(*group) for group in _by(rows, "dimension").items())
    return _figure(title, "Each number is the share of the row against the column.", panels)


def _shares(dimension: str, rows: Sequence[FigureRow]) -> Block:
    of: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        a, b, share = row["entrant_a"], row["entrant_b"], row["win_rate"]
        of[a], of[b] = of[a], of[b]  # who has no share is shown, too
        if share is not None:
            of[a][b], of[b][a] = share, 1 - share
    order = sorted(of, key=lambda name: -_mean([*of[name].values()]))
    cells = {
        (a, b): HeatCell(f"{100 * share:.0f}", shade_of(share))
        for a, shares in of.items()
        for b, share in shares.items()
    }
    legend = "Share of the row against the column (%); a tie is half a win."
    return heat_panel(dimension, square_map(order, cells), across="", legend=legend)


def calibration_figure(title: str, rows: Sequence[FigureRow]) -> str:
    """Draw how often each entrant is right against how sure it is."""
    about = "On the diagonal one is as often right as sure. The larger a dot, the more responses."
    return _figure(title, about, _calibrations(rows))


def _calibrations(rows: Sequence[FigureRow]) -> Iterator[Block]:
    for dimension, group in _by(rows, "dimension").items():
        for entrant, bins in _by(group, "entrant").items():
            yield calibration_panel(
                f"{entrant}: {dimension}" if dimension else entrant,
                "Share of wins" if dimension else "Share correct",
                [(one["confidence"], one["correctness"], one["n"]) for one in bins if one["n"]],
            )


def metrics_figure(title: str, rows: Sequence[FigureRow]) -> str:
    """Draw each metric of all entrants."""
    panels = (
        _metric(group, rows)
        for of_evaluation in _by(rows, "evaluation").values()
        for group in _by(of_evaluation, "metric").values()
    )
    return _figure(title, "Dot: value. Bar: 95 % interval.", panels)


def _metric(rows: Sequence[FigureRow], every: Sequence[FigureRow]) -> Block:
    first = rows[0]
    heading, axis = f"{first['evaluation']}: {first['metric']}", _axis(first)
    alike = (row for row in every if _axis(row) == axis)
    scale = scale_of(row[key] for row in alike for key in ("value", "low", "high"))
    estimates = [
        NamedEstimate(row["entrant"], row["value"], row["low"], row["high"]) for row in rows
    ]
    return intervals_panel(heading, axis, estimates, scale, 3)


def curve_figure(title: str, rows: Sequence[FigureRow]) -> str:
    """Draw each metric over the steps of each training."""
    panels = (
        _curve(group)
        for of_training in _by(rows, "training").values()
        for of_evaluation in _by(of_training, "evaluation").values()
        for group in _by(of_evaluation, "metric").values()
    )
    return _figure(title, "Dot: value. Bar: 95 % interval.", panels)


def _curve(rows: Sequence[FigureRow]) -> Block:
    first = rows[0]
    heading = f"{first['training']}, {first['evaluation']}: {first['metric']}"
    points = (
        CurvePoint(row["step"], row["value"], row["low"], row["high"])
        for row in rows
        if row["value"] is not None
    )
    return curve_panel(heading, _axis(first), sorted(points))


def _axis(row: FigureRow) -> str:
    better = "higher" if row["higher_is_better"] else "lower"
    return f"{row['metric']} ({row['unit']}; {better} is better)"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _by(rows: Iterable[FigureRow], key: str) -> dict[str, list[FigureRow]]:
    """Return rows by a key, in their order; without it they are one group, of no name."""
    groups: dict[str, list[FigureRow]] = {}
    for row in rows:
        groups.setdefault(row.get(key) or "", []).append(row)
    return groups


FIGURES: Final[Mapping[RowType | None, ToFigure]] = {
    EloRow: elo_figure,
    BradleyTerryRow: bradley_terry_figure,
    WinRateRow: win_rates_figure,
    CalibrationRow: calibration_figure,
    MetricRow: metrics_figure,
    CurveRow: curve_figure,
}
"""The figure of each kind of row that has one."""

_WIDEST: Final = 800  # of a row of panels, unless one alone is wider
_EDGE: Final = 20
_TITLE: Final = 44
_BETWEEN: Final = 28
_LARGER: Final = 1.25  # a title's letters against a label's


def _figure(title: str, about: str, panels: Iterable[Block]) -> str:
    """Return panels under one title as SVG, which is described and asks nothing of anybody."""
    rows = [*_rows(panels)]
    widest = max((_width(row) for row in rows), default=0)
    width = round(max(widest, _LARGER * wide(title)) + 2 * _EDGE)
    heights = [max(block.height for block in row) for row in rows]
    height = round(_TITLE + sum(heights) + _BETWEEN * max(len(rows) - 1, 0) + _EDGE)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        described(title, about),
        f"<style>\n{_style()}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        text(_EDGE, 30, title, "start", "title"),
        *_placed(rows, heights),
        "</svg>\n",
    )
    return "\n".join(parts)


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


_THEME: Final = re.compile(r":root \{(.*?)\}", re.DOTALL)
_COLOUR: Final = re.compile(r"--([\w-]+): ([^;]+);")
_USED: Final = re.compile(r"var\(--([\w-]+)\)")
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
""" + "".join(f".h{n} {{ fill: var(--h{n}); }}\n" for n in range(-SHADES, SHADES + 1))


@cache
def _style() -> str:
    """Return the style: light, and dark for who prefers that.

    Colours stand in it as they are, since programs that turn SVG into PDF know no variables.
    """
    page = files("commands.report").joinpath("templates", "style.css").read_text("utf-8")
    light, dark, *_ = (dict(_COLOUR.findall(theme)) for theme in _THEME.findall(page))
    in_light, in_dark = _coloured(light), _coloured(light | dark)
    return f"{_SHAPES}{in_light}@media (prefers-color-scheme: dark) {{\n{in_dark}}}\n"


def _coloured(colours: Mapping[str, str]) -> str:
    return _USED.sub(lambda used: colours[used[1]], _COLOURS)
