"""`tourney project metrics`: results of evaluations, and paired differences of two entrants."""

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.command import command
from commands.cli.shared.ledger import head_at, stream_of
from commands.cli.shared.output import Writer
from commands.cli.tables.metrics import NOTHING_EVALUATED, differences_table, metrics_table
from commands.errors import ConfigurationError
from ledger.chain import Head
from ledger.identity import Json, StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import RunComparison, compare_runs, metrics_of
from projections.evaluations.state import EVALUATION_EVENTS, EvaluationRun, evaluations_of
from projections.fold import fold


class EvaluationReading(NamedTuple):
    """A tournament's evaluations at a head of the ledger."""

    stream: StreamId
    head: Head
    runs: tuple[EvaluationRun, ...]  # of the newest plans

    @property
    def facts(self) -> dict[str, Json]:
        """The fields of JSON that name the source of a result."""
        return {"tournament": self.stream, "as_of": self.head.position, "head": self.head.chain}

    def of_entrant(self, name: str | None, option: str) -> "EvaluationReading":
        """Keep the runs of one entrant; None: of all.

        Raises:
            ConfigurationError: It was not evaluated.
        """
        entrants = {run.plan.entrant.label for run in self.runs}
        _require(option, name, entrants)
        tournament_section = (run for run in self.runs if name in {None, run.plan.entrant.label})
        return self._replace(runs=tuple(tournament_section))

    def of_evaluation(self, name: str | None) -> "EvaluationReading":
        """Keep the runs of one evaluation; None: of all.

        Raises:
            ConfigurationError: No entrant was evaluated on it.
        """
        _require("--evaluation", name, {run.plan.evaluation for run in self.runs})
        tournament_section = (run for run in self.runs if name in {None, run.plan.evaluation})
        return self._replace(runs=tuple(tournament_section))


def read_evaluations(
    ledger: Ledger, tournament: str | None, as_of: str | None, config: Path
) -> EvaluationReading:
    """Read a tournament's evaluations from an open ledger; no other event is read.

    Raises:
        ConfigurationError: The tournament is ambiguous, or the position is invalid.
        NothingRecorded: There is no such tournament.
    """
    stream, head = stream_of(ledger, tournament, config), head_at(ledger, as_of)
    events = ledger.read(until=head.position, types=EVALUATION_EVENTS)
    return EvaluationReading(stream, head, fold(evaluations_of(stream), events).runs)


@command
def metrics(
    paths: options.Paths,
    writer: Writer,
    evaluation: options.Evaluation = None,
    entrant: options.Entrant = None,
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
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
) -> None:
    """Show the results of evaluations.

    Example: tourney project metrics --compare base tuned
    """
    if entrant is not None and compare is not None:
        raise ConfigurationError(["--compare already names two entrants: leave out --entrant"])
    with Ledger.read_only(paths.of_ledger) as opened:
        source = read_evaluations(opened, tournament, as_of, paths.config)
    source = source.of_evaluation(evaluation).of_entrant(entrant, "--entrant")
    if rescore:
        # Imported here: it loads settings and evaluations, which no other reading command needs.
        rescoring = import_module("commands.evaluating.rescore")
        source = source._replace(runs=rescoring.rescore(source.runs, paths.config))
    if compare is None:
        table = metrics_table(map(metrics_of, source.runs), source.facts)
    else:
        table = differences_table(compare, compared_in(source, compare), source.facts)
    writer.write(table)


def compared_in(source: EvaluationReading, pair: tuple[str, str]) -> Sequence[RunComparison]:
    """Compare two entrants on each evaluation in which both observed the same item.

    Raises:
        ConfigurationError: There is none, or one of them was not evaluated.
    """
    first, second = (source.of_entrant(name, "--compare").runs for name in pair)
    found = [each for each in _compared(first, second) if each.n_pairs]
    if not found:
        shared = f"{pair[0]!r} and {pair[1]!r} share no evaluated item"
        raise ConfigurationError([f"--compare: {shared}; evaluate both on the same items"])
    return found


def _compared(
    first: Sequence[EvaluationRun], second: Sequence[EvaluationRun]
) -> Iterator[RunComparison]:
    others = {run.plan.evaluation: run for run in second}
    for run in first:
        if run.plan.evaluation in others:
            yield compare_runs(run, others[run.plan.evaluation])


def _require(option: str, name: str | None, known: Collection[str]) -> None:
    if name is not None and name not in known:
        if not known:
            raise ConfigurationError([NOTHING_EVALUATED])
        those = ", ".join(sorted(known))
        raise ConfigurationError([f"{option} {name!r} is not on record; evaluated: {those}"])
