"""`tourney project metrics`: results of evaluations, and the samples that they rest on."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.selection import OF_TOURNAMENT, WRITTEN, Selected, Selection, selecting
from commands.cli.tables.table import Table, table_of
from commands.errors import ConfigurationError, counted
from commands.reading.rows import curve_rows, metric_rows, sample_rows
from ledger.chain import Head
from ledger.events.evaluations import EvaluationPlanned
from ledger.identity import Json, StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import (
    Metric,
    RunComparison,
    RunMetrics,
    breaks,
    compare_runs,
    metrics_of,
    training_points,
)
from projections.evaluations.samples import ITEM_EVENTS, ITEMS, Items, asked_samples
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    EvaluationRun,
    Evaluations,
    evaluations_of,
    labels_of,
    other_settings,
)
from projections.fold import fold
from projections.intervals import NO_INTERVAL
from projections.results.evaluations import (
    LONGEST,
    CurveRow,
    MetricDifferenceRow,
    MetricRow,
    SampleRow,
)

Listed: TypeAlias = Literal["all", "wrong"]


class EvaluationReading(NamedTuple):
    """A tournament's evaluations at a head of the ledger."""

    stream: StreamId
    head: Head
    runs: tuple[EvaluationRun, ...]  # of the newest plans
    known: Evaluations

    @property
    def facts(self) -> dict[str, Json]:
        """The fields of JSON that name the source of a result."""
        return {"tournament": self.stream, "as_of": self.head.position, "head": self.head.chain}

    def only(self, option: str, names: Sequence[str] | None) -> "EvaluationReading":
        """Keep the runs that an option names, by evaluation or by entrant; no name: all."""
        if not names:
            return self
        if not self.runs:
            raise ConfigurationError([NOTHING_EVALUATED])
        known = {_label(run, option) for run in self.runs}
        there_are = f"is not on record; evaluated: {', '.join(sorted(known))}"
        if faults := [f"{option} {name!r} {there_are}" for name in names if name not in known]:
            raise ConfigurationError(faults)
        return self._replace(runs=tuple(run for run in self.runs if _label(run, option) in names))


def _label(run: EvaluationRun, option: str) -> str:
    return run.plan.evaluation if option == "--evaluation" else run.plan.entrant.label


def read_evaluations(
    selection: Selection, evaluations: Sequence[str] | None, entrants: Sequence[str] | None
) -> EvaluationReading:
    """Read a tournament's evaluations, or those that are named; no other event is read."""
    with Ledger.read_only(selection.path) as opened:
        stream, head = selection.stream_in(opened), selection.head_in(opened)
        events = opened.read(until=head.position, types=EVALUATION_EVENTS)
        known = fold(evaluations_of(stream), events)
    reading = EvaluationReading(stream, head, known.runs, known)
    return reading.only("--evaluation", evaluations).only("--entrant", entrants)


@selecting(*OF_TOURNAMENT, *WRITTEN)
def metrics(
    ctx: Selected,
    evaluations: options.Evaluations = None,
    entrants: options.Entrants = None,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score the recorded answers again with today's code.")
    ] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            autocompletion=completion.entrants,
            help="Show B minus A on the samples that both have.",
        ),
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Show metrics over the steps of trainings.")
    ] = False,
    samples: Annotated[
        Listed | None,
        typer.Option(
            help="List what was asked, the answers, and the scores instead: of all samples, or of"
            " those answered wrongly."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="With --samples: at most this many, in order.")
    ] = None,
) -> None:
    """Show the results of evaluations, or the samples that they rest on.

    Example: tourney project metrics --compare base tuned
    """
    selection = ctx.selection
    if entrants and compare is not None:
        raise ConfigurationError(["--compare already names two entrants: leave out --entrant"])
    given = {"--curve": curve, "--rescore": rescore, "--compare": compare is not None}
    others = [option for option, is_given in given.items() if is_given]
    if samples is not None and others:
        raise ConfigurationError([f"--samples lists what is recorded: leave out {others[0]}"])
    if curve and others[1:]:
        raise ConfigurationError([f"--curve shows what is recorded: leave out {others[1]}"])
    if samples is None and limit is not None:
        raise ConfigurationError(["--limit is of samples: add --samples all"])
    source = read_evaluations(selection, evaluations, entrants)
    if samples is not None:
        table = _samples(selection.path, source, samples, limit=limit)
    elif curve:
        table = _curve(source)
    elif compare is not None:
        table = _compared_table(_today(source, selection.config) if rescore else source, compare)
    else:
        table = metrics_table(_today(source, selection.config) if rescore else source)
    selection.write(table)


def _today(source: EvaluationReading, config: Path) -> EvaluationReading:
    """Return runs as the code of today scores them."""
    # Imported here: it loads settings and evaluations, which no other reading command needs.
    rescoring = import_module("commands.evaluating.registry")
    readers = import_module("commands.backends.wiring").READERS
    return source._replace(runs=rescoring.rescore(source.runs, config, readers))


def _compared(source: EvaluationReading, pair: tuple[str, str]) -> Sequence[RunComparison]:
    """Compare two entrants on each evaluation in which both observed the same item."""
    first, second = (source.only("--compare", [name]).runs for name in pair)
    others = {run.plan.evaluation: run for run in second}
    both = [run for run in first if run.plan.evaluation in others]
    compared = [compare_runs(run, others[run.plan.evaluation]) for run in both]
    paired = [comparison for comparison in compared if comparison.n_pairs]
    if not paired:
        shared = f"{pair[0]!r} and {pair[1]!r} share no evaluated item"
        raise ConfigurationError([f"--compare: {shared}; evaluate both on the same items"])
    return paired


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


def metrics_table(source: EvaluationReading) -> Table:
    """Return a row for each metric, with its standard error, interval and unscorable samples."""
    runs = [*map(metrics_of, source.runs)]
    return table_of(
        MetricRow,
        (row for measured in runs for row in metric_rows(measured)),
        "tourney/metrics@1",
        "Metrics",
        notes=_notes(runs, source.known),
        facts=source.facts,
    )


def _notes(runs: Sequence[RunMetrics], known: Evaluations) -> Iterator[str]:
    if not runs:
        yield NOTHING_EVALUATED
        return
    for measured in runs:
        yield from _of_run(measured)
        yield from _how_asked(measured.run.plan, known)
    yield _CLUSTERED
    estimates = (metric.estimate for measured in runs for metric in measured.metrics)
    if any(estimate.value is not None and estimate.low is None for estimate in estimates):
        yield NO_INTERVAL
    if any(measured.run.plan.kind == "perplexity" for measured in runs):
        yield _COMPARABLE


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


def _curve(source: EvaluationReading) -> Table:
    """Return a row for each metric at each step of each training."""
    labels = {labels_of(run.plan) for run in source.runs}
    points = [point for point in training_points(source.known) if point.labels in labels]
    rows = tuple(curve_rows(points))
    return table_of(
        CurveRow,
        rows,
        "tourney/metric-curve@1",
        "Metrics over training steps",
        notes=(*breaks(points), _CLUSTERED) if rows else (NO_STEPS,),
        facts=source.facts,
    )


def _samples(path: Path, source: EvaluationReading, which: Listed, *, limit: int | None) -> Table:
    """Return a row for each sample, or for each that was answered wrongly; at most `limit`."""
    with Ledger.read_only(path) as opened:
        items = fold(ITEMS, opened.read(until=source.head.position, types=ITEM_EVENTS))
    runs = source.runs
    every = (row for run in runs for row in sample_rows(run, items))
    rows = [row for row in every if which == "all" or row.is_right is False]
    return table_of(
        SampleRow,
        rows[:limit],
        "tourney/samples@1",
        "Samples" if which == "all" else "Wrong answers",
        notes=(
            *_sample_notes(runs, items, n_left=len(rows) - len(rows[:limit])),
            *(note for run in runs for note in _how_asked(run.plan, source.known)),
        ),
        facts=source.facts,
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


def _compared_table(source: EvaluationReading, pair: tuple[str, str]) -> Table:
    """Return a row for each metric: the second entrant's minus the first's."""
    (first, second), compared = pair, _compared(source, pair)
    return table_of(
        MetricDifferenceRow,
        (
            _difference(comparison, metric)
            for comparison in compared
            for metric in comparison.metrics
        ),
        "tourney/metric-differences@1",
        f"{second} minus {first}",
        notes=(*(note for comparison in compared for note in _of_pair(comparison)), _CLUSTERED),
        facts={**source.facts, "first": first, "second": second},
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
