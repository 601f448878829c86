"""A figure as Vega-Lite: data and marks in JSON, for who wants to change how it looks."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from commands.runs.report.drawings.chart import (
    CalibrationPanel,
    Chart,
    CurvePanel,
    CurvePoint,
    GridPanel,
    IntervalPanel,
    NamedEstimate,
    Panel,
)
from ledger.identity import Json
from projections.artifacts.escaping import shown

_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
_BESIDE: Final = 3  # panels of a row
_TICKS: Final = "Confidence (p_correct)"


def as_vega_lite(chart: Chart) -> dict[str, Json]:
    """Return a figure as a Vega-Lite specification, which holds its data."""
    panels: list[Json] = [_view(panel) for panel in chart.panels]
    small = (CalibrationPanel, CurvePanel)
    beside = _BESIDE if any(isinstance(each, small) for each in chart.panels) else 1
    return {
        "$schema": _SCHEMA,
        "title": shown(chart.title),
        "description": chart.about,
        "columns": beside,
        "concat": panels,
        "resolve": {"scale": {"color": "independent", "size": "independent"}},
    }


def _view(panel: Panel) -> dict[str, Json]:
    title = shown(panel.heading)
    match panel:
        case IntervalPanel():
            return {"title": title, **_intervals(panel)}
        case GridPanel():
            return {"title": title, **_grid(panel)}
        case CalibrationPanel():
            return {"title": title, **_calibration(panel)}
        case CurvePanel():
            return {"title": title, **_curve(panel)}
        case _:
            assert_never(panel)


def _intervals(panel: IntervalPanel) -> dict[str, Json]:
    names: list[Json] = [shown(each.name) for each in panel.rows]
    along = {"field": "name", "type": "nominal", "sort": names, "title": None}
    return {
        "width": 400,
        "height": {"step": 24},
        "data": {"values": [*_values(panel.rows)]},
        "encoding": {"y": along},
        "layer": _with_intervals("x", panel.axis),
    }


def _with_intervals(way: str, axis: str) -> list[Json]:
    """Return two layers: the interval as a rule, the value as a dot."""
    scale: Json = {"zero": False}
    ends: dict[str, Json] = {
        way: {"field": "low", "type": "quantitative", "title": axis, "scale": scale},
        f"{way}2": {"field": "high"},
    }
    value: Json = {"field": "value", "type": "quantitative", "title": axis, "scale": scale}
    rule: Json = {"type": "rule", "strokeWidth": 4, "opacity": 0.45}
    return [
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": rule,
            "encoding": ends,
        },
        {"mark": {"type": "point", "filled": True, "size": 70}, "encoding": {way: value}},
    ]


def _values(rows: Iterable[NamedEstimate | CurvePoint]) -> Iterator[Json]:
    for row in rows:
        fields: dict[str, Json] = row._asdict()
        yield {key: shown(each) if isinstance(each, str) else each for key, each in fields.items()}


def _grid(panel: GridPanel) -> dict[str, Json]:
    rows: list[Json] = [*map(shown, panel.rows)]
    columns: list[Json] = [*map(shown, panel.columns)]
    values: list[Json] = [
        {"row": row, "column": column, "value": cell.value, "text": cell.text, "shade": cell.shade}
        for row, cells in zip(rows, panel.cells, strict=True)
        for column, cell in zip(columns, cells, strict=True)
        if cell is not None
    ]
    colour: Json = {
        "field": "shade",
        "type": "quantitative",
        "scale": {"scheme": "blueorange", "domain": [-1, 1]},
        "legend": None,
    }
    across = {"field": "column", "type": "nominal", "sort": columns, "title": panel.across or None}
    down = {"field": "row", "type": "nominal", "sort": rows, "title": panel.down}
    return {
        "title": {"text": shown(panel.heading), "subtitle": panel.legend},
        "width": {"step": 48},
        "height": {"step": 28},
        "data": {"values": values},
        "encoding": {"x": across, "y": down},
        "layer": [
            {"mark": "rect", "encoding": {"color": colour}},
            {"mark": "text", "encoding": {"text": {"field": "text", "type": "nominal"}}},
        ],
    }


def _calibration(panel: CalibrationPanel) -> dict[str, Json]:
    def share(field: str, title: str) -> Json:
        scale: Json = {"domain": [0, 1]}
        return {"field": field, "type": "quantitative", "title": title, "scale": scale}

    bins: list[Json] = [each._asdict() for each in panel.bins]
    size: Json = {"field": "n", "type": "quantitative", "title": "Responses"}
    place = {"x": share("confidence", _TICKS), "y": share("correctness", panel.upwards)}
    ends: list[Json] = [{"confidence": end, "correctness": end} for end in (0, 1)]
    diagonal: Json = {"type": "line", "strokeDash": [3, 3], "color": "gray"}
    return {
        "width": 180,
        "height": 180,
        "encoding": place,
        "layer": [
            {"data": {"values": ends}, "mark": diagonal},
            {
                "data": {"values": bins},
                "mark": {"type": "point", "filled": True},
                "encoding": {"size": size},
            },
        ],
    }


def _curve(panel: CurvePanel) -> dict[str, Json]:
    step: Json = {"field": "step", "type": "quantitative", "title": "Training (steps)"}
    value: Json = {"field": "value", "type": "quantitative", "title": panel.axis}
    return {
        "width": 320,
        "height": 180,
        "data": {"values": [*_values(panel.points)]},
        "encoding": {"x": step},
        "layer": [
            {"mark": "line", "encoding": {"y": value}},
            *_with_intervals("y", panel.axis),
        ],
    }
