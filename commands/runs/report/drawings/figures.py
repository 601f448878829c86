"""Make the figure of each table of results from its rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from commands.runs.report.drawings.chart import (
    CalibrationPanel,
    Chart,
    ConfidenceBin,
    CurvePanel,
    CurvePoint,
    GridCell,
    GridPanel,
    IntervalPanel,
    NamedEstimate,
    Panel,
)
from projections.evaluations.steps import numbered_label
from projections.results.columns import RowType
from projections.results.evaluations import CurveRow, MetricRow
from projections.results.judges import CalibrationRow
from projections.results.ratings import BradleyTerryRow, EloRow, WinRateRow

ChartRow: TypeAlias = Mapping[str, Any]  # as --json has them
ToChart: TypeAlias = Callable[[str, Sequence[ChartRow]], Chart]
_EVEN: Final = 0.5
_SWEPT: Final = "k_"  # what the ratings under other K are called


def elo_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw Elo ratings with their intervals, or under each K of a sweep."""
    if any(key.startswith(_SWEPT) for key in rows[0]):
        return sweep_chart(title, rows)
    panels = _ratings(
        rows, ("rating", "ci95_low", "ci95_high"), "Elo rating (points); bar: 95 % interval"
    )
    return Chart(title, "Dot: rating. Bar: 95 % interval. All on one scale.", (*panels,))


def bradley_terry_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw Bradley-Terry ratings with their intervals."""
    panels = _ratings(
        rows, ("rating", "low", "high"), "Bradley-Terry rating (Elo points); bar: interval"
    )
    return Chart(title, "Dot: rating. Bar: interval. All on one scale.", (*panels,))


def _ratings(rows: Sequence[ChartRow], keys: Sequence[str], axis: str) -> Iterator[IntervalPanel]:
    for dimension, group in _by(rows, "dimension").items():
        found = (NamedEstimate(row["entrant"], *(row[key] for key in keys)) for row in group)
        yield IntervalPanel(dimension, axis, 0, tuple(found))


def sweep_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw the ratings under each K as a heat map."""
    panels = (_sweep(*group) for group in _by(rows, "dimension").items())
    return Chart(title, "Each number is a rating under one K.", (*panels,))


def _sweep(dimension: str, rows: Sequence[ChartRow]) -> GridPanel:
    swept = [key for key in rows[0] if key.startswith(_SWEPT)]
    rated = [row for row in rows if all(row[key] is not None for key in swept)]
    values = [row[key] for row in rated for key in swept]
    middle = _mean(values)
    reach = max((abs(each - middle) for each in values), default=0) or 1.0
    return GridPanel(
        dimension,
        down="Entrant",
        across="K (points, the most a match changes)",
        legend=f"Elo rating (points). Orange: above {middle:.0f}, blue: below.",
        rows=tuple(row["entrant"] for row in rated),
        columns=tuple(key.removeprefix(_SWEPT) for key in swept),
        cells=tuple(
            tuple(GridCell(row[k], f"{row[k]:.0f}", (row[k] - middle) / reach) for k in swept)
            for row in rated
        ),
    )


def win_rates_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw the share of each entrant against each other as a heat map, the best on top."""
    panels = (_shares(*group) for group in _by(rows, "dimension").items())
    return Chart(title, "Each number is the share of the row against the column.", (*panels,))


def _shares(dimension: str, rows: Sequence[ChartRow]) -> GridPanel:
    of: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        a, b, share = row["entrant_a"], row["entrant_b"], row["win_rate"]
        of[a], of[b] = of[a], of[b]  # who has no share is shown, too
        if share is not None:
            of[a][b], of[b][a] = share, 1 - share
    order = sorted(of, key=lambda name: -_mean([*of[name].values()]))
    return GridPanel(
        dimension,
        down="Entrant",
        across="",
        legend="Share of the row against the column (%); a tie is half a win.",
        rows=(*order,),
        columns=(*order,),
        cells=tuple(tuple(_share(of[a].get(b)) for b in order) for a in order),
    )


def _share(share: float | None) -> GridCell | None:
    if share is None:
        return None
    return GridCell(share, f"{100 * share:.0f}", 2 * (share - _EVEN))


def calibration_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw how often each entrant is right against how sure it is."""
    about = "On the diagonal one is as often right as sure. The larger a dot, the more responses."
    return Chart(title, about, (*_calibrations(rows),))


def _calibrations(rows: Sequence[ChartRow]) -> Iterator[CalibrationPanel]:
    for dimension, group in _by(rows, "dimension").items():
        for entrant, bins in _by(group, "entrant").items():
            filled = [each for each in bins if each["n"]]
            yield CalibrationPanel(
                f"{entrant}: {dimension}" if dimension else entrant,
                "Share of wins" if dimension else "Share correct",
                tuple(
                    ConfidenceBin(each["confidence"], each["correctness"], each["n"])
                    for each in filled
                ),
            )


def metrics_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw each metric of all entrants; over steps, where they are checkpoints of one training."""
    panels = (
        _metric(group)
        for of_evaluation in _by(rows, "evaluation").values()
        for group in _by(of_evaluation, "metric").values()
    )
    return Chart(title, "Dot: value. Bar: 95 % interval.", (*panels,))


def curve_chart(title: str, rows: Sequence[ChartRow]) -> Chart:
    """Draw each metric over the steps of each training."""
    panels = (
        _curve(group)
        for of_training in _by(rows, "training").values()
        for of_evaluation in _by(of_training, "evaluation").values()
        for group in _by(of_evaluation, "metric").values()
    )
    return Chart(title, "Dot: value. Bar: 95 % interval.", (*panels,))


def _curve(rows: Sequence[ChartRow]) -> CurvePanel:
    first = rows[0]
    points = (
        CurvePoint(row["step"], row["value"], row["low"], row["high"])
        for row in rows
        if row["value"] is not None
    )
    heading = f"{first['training']}, {first['evaluation']}: {first['metric']}"
    return CurvePanel(heading, _axis(first), tuple(sorted(points)))


def _axis(row: ChartRow) -> str:
    better = "higher" if row["higher_is_better"] else "lower"
    return f"{row['metric']} ({row['unit']}; {better} is better)"


def _metric(rows: Sequence[ChartRow]) -> Panel:
    first = rows[0]
    heading, axis = f"{first['evaluation']}: {first['metric']}", _axis(first)
    trained = _trained(rows)
    if trained is not None:
        stem, points = trained
        return CurvePanel(f"{stem}, {heading}" if stem else heading, axis, points)
    found = (NamedEstimate(row["entrant"], row["value"], row["low"], row["high"]) for row in rows)
    return IntervalPanel(heading, axis, 3, tuple(found))


def _trained(rows: Iterable[ChartRow]) -> tuple[str, tuple[CurvePoint, ...]] | None:
    """Return the checkpoints of one training in order; None: some entrant is none."""
    known = [row for row in rows if row["value"] is not None]
    found = [each for row in known if (each := numbered_label(row["entrant"]))]
    trainings = {each.training for each in found}
    if len(found) < len(known) or len(trainings) != 1 or len(found) == 1:
        return None
    points = (
        CurvePoint(name.step, row["value"], row["low"], row["high"])
        for name, row in zip(found, known, strict=True)
    )
    return trainings.pop(), tuple(sorted(points))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _by(rows: Iterable[ChartRow], key: str) -> dict[str, list[ChartRow]]:
    """Return rows by a key, in their order; without it they are one group, of no name."""
    groups: dict[str, list[ChartRow]] = {}
    for row in rows:
        groups.setdefault(row.get(key) or "", []).append(row)
    return groups


FIGURES: Final[Mapping[RowType | None, ToChart]] = {
    EloRow: elo_chart,
    BradleyTerryRow: bradley_terry_chart,
    WinRateRow: win_rates_chart,
    CalibrationRow: calibration_chart,
    MetricRow: metrics_chart,
    CurveRow: curve_chart,
}
"""The figure of each kind of row that has one."""
