"""`tourney project metrics`: results of evaluations, and the samples that they rest on."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.ledger import head_at, stream_of
from commands.cli.shared.selection import OF_TOURNAMENT, WRITTEN, Selection, selecting
from commands.cli.tables.metrics import (
    NOTHING_EVALUATED,
    curve_table,
    differences_table,
    metrics_table,
    samples_table,
)
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from ledger.chain import Head
from ledger.identity import Json, StreamId
from ledger.store import Ledger
from projections.evaluations.curve import training_points
from projections.evaluations.metrics import RunComparison, compare_runs, metrics_of
from projections.evaluations.samples import ITEM_EVENTS, ITEMS
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    EvaluationRun,
    Evaluations,
    evaluations_of,
    labels_of,
)
from projections.fold import fold


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
        """Keep the runs that an option names, by evaluation or by entrant; no name: all.

        Raises:
            ConfigurationError: There are none of a name.
        """
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


def read_evaluations(selection: Selection) -> EvaluationReading:
    """Read a tournament's evaluations; no other event is read.

    Raises:
        ConfigurationError: The tournament is ambiguous, or the position is invalid.
        NothingRecorded: There is no such tournament.
    """
    with Ledger.read_only(selection.path) as opened:
        stream = stream_of(opened, selection.tournament, selection.config)
        head = head_at(opened, selection.as_of)
        events = opened.read(until=head.position, types=EVALUATION_EVENTS)
        known = fold(evaluations_of(stream), events)
        return EvaluationReading(stream, head, known.runs, known)


@selecting(*OF_TOURNAMENT, *WRITTEN)
def metrics(
    ctx: typer.Context,
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
        bool,
        typer.Option("--samples", help="List what was asked, the answers, and the scores instead."),
    ] = False,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="With --samples: only those answered wrongly.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="With --samples: at most this many, in order.")
    ] = None,
) -> None:
    """Show the results of evaluations, or the samples that they rest on.

    Example: tourney project metrics --compare base tuned
    """
    selection: Selection = ctx.obj
    if entrants and compare is not None:
        raise ConfigurationError(["--compare already names two entrants: leave out --entrant"])
    given = {"--curve": curve, "--rescore": rescore, "--compare": compare is not None}
    others = [option for option, is_given in given.items() if is_given]
    if samples and others:
        raise ConfigurationError([f"--samples lists what is recorded: leave out {others[0]}"])
    if curve and others[1:]:
        raise ConfigurationError([f"--curve shows what is recorded: leave out {others[1]}"])
    if not samples and (wrong or limit is not None):
        option = "--wrong" if wrong else "--limit"
        raise ConfigurationError([f"{option} is of samples: add --samples"])
    source = read_evaluations(selection)
    source = source.only("--evaluation", evaluations).only("--entrant", entrants)
    if samples:
        table = _samples(selection.path, source, is_wrong=wrong, limit=limit)
        selection.writer.write(table)
        return
    if curve:
        labels = {labels_of(run.plan) for run in source.runs}
        points = [point for point in training_points(source.known) if point.labels in labels]
        selection.writer.write(curve_table(points, source.facts))
        return
    if rescore:
        # Imported here: it loads settings and evaluations, which no other reading command needs.
        rescoring = import_module("commands.evaluating.rescore")
        readers = import_module("commands.backends.wiring").READERS
        source = source._replace(runs=rescoring.rescore(source.runs, selection.config, readers))
    if compare is None:
        table = metrics_table(map(metrics_of, source.runs), source.facts, source.known)
    else:
        table = differences_table(compare, _compared(source, compare), source.facts)
    selection.writer.write(table)


def _samples(path: Path, source: EvaluationReading, *, is_wrong: bool, limit: int | None) -> Table:
    """List the samples of evaluations with the items that they are of."""
    with Ledger.read_only(path) as opened:
        items = fold(ITEMS, opened.read(until=source.head.position, types=ITEM_EVENTS))
    return samples_table(
        source.runs, items, source.facts, known=source.known, is_wrong=is_wrong, limit=limit
    )


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
