"""Metrics of evaluations, and paired differences of them, as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from reprlib import Repr
from typing import Final

from commands.cli.tables.table import Table, table_of
from commands.errors import counted
from commands.reading.results import curve_rows, rows_of_metrics, sample_rows
from ledger.events.evaluations import EvaluationPlanned
from ledger.identity import Json
from projections.evaluations.curve import TrainingPoint, breaks
from projections.evaluations.metrics import Metric, RunComparison, RunMetrics
from projections.evaluations.samples import Items, asked_samples
from projections.evaluations.state import EvaluationRun, Evaluations, other_settings
from projections.intervals import NO_INTERVAL
from projections.results.evaluations import (
    LONGEST,
    CurveRow,
    MetricDifferenceRow,
    MetricRow,
    SampleRow,
)

NO_STEPS: Final = (
    "no evaluated entrant has a training step: no Evaluator recorded one, and no label or folder"
    " names one, such as step_50 or checkpoint-60"
)
NOTHING_EVALUATED: Final = "no evaluations on record; run `tourney apply evaluate` first"
_brief: Final = Repr()
_brief.maxstring = LONGEST
_CLUSTERED: Final = (
    "Standard errors are cluster-robust, with prompts as clusters (Liang and Zeger 1986, times"
    " C / (C - 1) for C clusters). Low and high: 95 % interval, by Student's t."
)
_COMPARABLE: Final = (
    "Perplexity per token compares only entrants with the same tokenizer;"
    " bits per byte compares all."
)


def metrics_table(
    runs: Iterable[RunMetrics], facts: Mapping[str, Json], known: Evaluations
) -> Table:
    """Return a row for each metric, with its standard error, interval and unscorable samples."""
    runs = tuple(runs)
    return table_of(
        MetricRow,
        (row for measured in runs for row in rows_of_metrics(measured)),
        "tourney/metrics@1",
        "Metrics",
        notes=_notes(runs, known),
        facts=facts,
    )


def _notes(runs: Sequence[RunMetrics], known: Evaluations) -> Iterator[str]:
    if not runs:
        yield NOTHING_EVALUATED
        return
    for measured in runs:
        yield from _of_run(measured)
        yield from _how_asked(measured.run.plan, known)
    yield _CLUSTERED
    if any(_lacks_interval(metric) for measured in runs for metric in measured.metrics):
        yield NO_INTERVAL
    if any(measured.run.plan.kind == "perplexity" for measured in runs):
        yield _COMPARABLE


def _lacks_interval(metric: Metric) -> bool:
    return metric.estimate.value is not None and metric.estimate.low is None


def _of_run(measured: RunMetrics) -> Iterator[str]:
    """Yield notes on missing, unscorable and unplanned samples of a run."""
    plan, counts = measured.run.plan, measured.counts
    name = f"{plan.entrant.label} on {plan.evaluation}"
    n_done = counts.n_planned - len(measured.run.missing)
    if measured.run.missing:
        planned = f"{counted(counts.n_planned, 'sample')} of plan {plan.number}"
        yield f"{name} is incomplete: {n_done} of {planned}; evaluate again to continue"
    n_unjudged = counts.n_observed - len(measured.run.judged)
    if plan.scored_by and n_unjudged:
        answers, judge = counted(n_unjudged, "answer"), plan.scored_by.judge.label
        remedy = "`tourney apply evaluate` asks it, or says why not"
        yield f"{name}: {answers} without a score by {judge}; {remedy}"
    by_reason = attrgetter("reason")
    for reason, fates in groupby(sorted(measured.run.unscorable, key=by_reason), by_reason):
        first, *others = fates
        yield f"{name}: {1 + len(others)} unscorable, {reason}: {first.label}: {first.detail}"
    if len(plan.items) < plan.n_available:
        yield f"{name}: {len(plan.items)} of {counted(plan.n_available, 'item')} were planned"


def _how_asked(plan: EvaluationPlanned, known: Evaluations) -> Iterator[str]:
    """Yield the system prompt of a run, and what an earlier run under its labels had instead."""
    name = f"{plan.entrant.label} on {plan.evaluation}"
    if plan.asking and plan.asking.system:
        yield f"{name}: asked with the system prompt {_brief.repr(plan.asking.system)}"
    newest = {_differences(earlier, plan): earlier.number for earlier in known.replaced(plan)}
    for others, number in newest.items():
        yield (
            f"{name}: plan {plan.number} replaced plan {number}, which had other settings:"
            f" {others}; --as-of shows the ledger as it was"
        )


def _differences(first: EvaluationPlanned, second: EvaluationPlanned) -> str:
    return ", ".join(f"{name} {both}" for name, both in other_settings(first, second).items())


def curve_table(points: Sequence[TrainingPoint], facts: Mapping[str, Json]) -> Table:
    """Return a row for each metric at each step of each training."""
    rows = tuple(curve_rows(points))
    return table_of(
        CurveRow,
        rows,
        "tourney/metric-curve@1",
        "Metrics over training steps",
        notes=(*breaks(points), _CLUSTERED) if rows else (NO_STEPS,),
        facts=facts,
    )


def samples_table(
    runs: Iterable[EvaluationRun],
    items: Items,
    facts: Mapping[str, Json],
    *,
    known: Evaluations,
    is_wrong: bool,
    limit: int | None,
) -> Table:
    """Return a row for each sample, or for each that was answered wrongly; at most `limit`."""
    runs = tuple(runs)
    every = (row for run in runs for row in sample_rows(run, items))
    rows = [row for row in every if not is_wrong or row.is_right is False]
    return table_of(
        SampleRow,
        rows[:limit],
        "tourney/samples@1",
        "Wrong answers" if is_wrong else "Samples",
        notes=(
            *_sample_notes(runs, items, n_left=len(rows) - len(rows[:limit])),
            *(note for run in runs for note in _how_asked(run.plan, known)),
        ),
        facts=facts,
        hidden=() if any(run.plan.scored_by for run in runs) else {"judged", "reply"},
    )


def _sample_notes(runs: Sequence[EvaluationRun], items: Items, *, n_left: int) -> Iterator[str]:
    if not runs:
        yield NOTHING_EVALUATED
    if n_left:
        yield f"{n_left:,} more: raise --limit"
    for run in runs:
        name = f"{run.plan.entrant.label} on {run.plan.evaluation}"
        rights = [sample.is_right for sample in asked_samples(run, items)]
        if n_known := len(rights) - rights.count(None):
            yield f"{name}: {rights.count(False):,} of {counted(n_known, 'answer')} wrong"
        elif rights:
            yield f"{name}: it has no right and wrong answers"
        if n := len(run.unscorable):
            yield f"{name}: {n:,} unscorable; they do not count as wrong"


def differences_table(
    pair: tuple[str, str], comparisons: Iterable[RunComparison], facts: Mapping[str, Json]
) -> Table:
    """Return a row for each metric: the second entrant's minus the first's."""
    comparisons = tuple(comparisons)
    first, second = pair
    return table_of(
        MetricDifferenceRow,
        (
            _difference(comparison, metric)
            for comparison in comparisons
            for metric in comparison.metrics
        ),
        "tourney/metric-differences@1",
        f"{second} minus {first}",
        notes=(*(note for comparison in comparisons for note in _of_pair(comparison)), _CLUSTERED),
        facts={**facts, "first": first, "second": second},
    )


def _difference(comparison: RunComparison, metric: Metric) -> MetricDifferenceRow:
    evaluation, estimate = comparison.first.plan.evaluation, metric.estimate
    return MetricDifferenceRow(
        id=metric.id_on(evaluation),
        evaluation=evaluation,
        metric=metric.name,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        difference=estimate.value,
        standard_error=estimate.standard_error,
        low=estimate.low,
        high=estimate.high,
        n_pairs=estimate.n,
        n_left_out=comparison.n_left_out,
    )


def _of_pair(comparison: RunComparison) -> Iterator[str]:
    """Yield warnings on what limits a comparison."""
    plan = comparison.first.plan
    name = plan.evaluation
    if different := _differences(plan, comparison.second.plan):
        yield f"{name}: the two were evaluated with different settings: {different}"
    if plan.run_key == comparison.second.plan.run_key:
        yield f"{name}: both labels name the same run"
    if comparison.n_left_out:
        samples = counted(comparison.n_left_out, "sample")
        yield f"{name}: {samples} left out, which only one of them has"
    unknown = (metric for metric in comparison.metrics if metric.estimate.value is None)
    apart = [metric.name for metric in unknown if metric.estimate.n > 0]
    if apart:
        yield f"{name}: {', '.join(apart)} cannot be compared: the tokenizers differ"
