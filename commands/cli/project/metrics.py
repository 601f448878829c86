"""`tourney project metrics`: what entrants' evaluations came to, and how two of them differ."""

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from commands.cli.shared.ledger import head_at, ledger_path, stream_of
from commands.cli.shared.options import (
    DEFAULT_CONFIG,
    AsOfOption,
    ConfigOption,
    EntrantOption,
    EvaluationOption,
    FormatOption,
    JsonOption,
    LedgerOption,
    TournamentOption,
)
from commands.cli.shared.output import write
from commands.cli.tables.metrics import differences_table, metrics_table
from commands.cli.tables.render import Format
from commands.errors import ConfigurationError
from ledger.chain import Head
from ledger.identity import Json, StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import RunComparison, compare_runs, metrics_of
from projections.evaluations.state import EVALUATION_EVENTS, EvaluationRun, evaluations_of
from projections.fold import fold


class EvaluationReading(NamedTuple):
    """A tournament's evaluations, as of a head."""

    stream: StreamId
    head: Head
    runs: tuple[EvaluationRun, ...]  # of the newest plans

    @property
    def facts(self) -> dict[str, Json]:
        """What a result in JSON says of where it comes from."""
        return {"tournament": self.stream, "as_of": self.head.position, "head": self.head.chain}

    def of_entrant(self, name: str | None, option: str) -> "EvaluationReading":
        """Leave out what others did.

        Raises:
            ConfigurationError: The one that is named was not evaluated.
        """
        entrants = {run.plan.entrant.label for run in self.runs}
        _require(option, name, entrants)
        kept = (run for run in self.runs if name in {None, run.plan.entrant.label})
        return self._replace(runs=tuple(kept))

    def of_evaluation(self, name: str | None) -> "EvaluationReading":
        """Leave out other evaluations.

        Raises:
            ConfigurationError: Nobody was evaluated on the one that is named.
        """
        _require("--evaluation", name, {run.plan.evaluation for run in self.runs})
        kept = (run for run in self.runs if name in {None, run.plan.evaluation})
        return self._replace(runs=tuple(kept))


def read_evaluations(
    ledger: Ledger, tournament: str | None, as_of: str | None, config: Path
) -> EvaluationReading:
    """Read a tournament's evaluations out of an open ledger; no other event is read.

    Raises:
        ConfigurationError: Which tournament, or as of when, cannot be told.
        NothingRecorded: There is no such tournament.
    """
    stream, head = stream_of(ledger, tournament, config), head_at(ledger, as_of)
    events = ledger.read(until=head.position, types=EVALUATION_EVENTS)
    return EvaluationReading(stream, head, fold(evaluations_of(stream), events).runs)


def metrics(
    evaluation: EvaluationOption = None,
    entrant: EntrantOption = None,
    rescore: Annotated[
        bool,
        typer.Option("--rescore", help="Clean and compare recorded answers again, as of today."),
    ] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare", metavar="A B", help="By how much B is larger than A, on what both have."
        ),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    tournament: TournamentOption = None,
    as_of: AsOfOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show what evaluations came to. Example: tourney project metrics --compare base tuned."""
    if entrant is not None and compare is not None:
        raise ConfigurationError(["--compare names its entrants: leave out --entrant"])
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        source = read_evaluations(opened, tournament, as_of, config)
    source = source.of_evaluation(evaluation).of_entrant(entrant, "--entrant")
    if rescore:
        # It takes what settings and evaluations are made of, for which no other reading waits.
        rescoring = import_module("commands.evaluating.rescore")
        source = source._replace(runs=rescoring.rescored(source.runs, config))
    if compare is None:
        table = metrics_table(map(metrics_of, source.runs), source.facts)
    else:
        table = differences_table(compare, compared_in(source, compare), source.facts)
    write(table, output_format, as_json=as_json)


def compared_in(source: EvaluationReading, pair: tuple[str, str]) -> Sequence[RunComparison]:
    """Compare two entrants on each evaluation of which both have observed a sample.

    Raises:
        ConfigurationError: There is none, or one of them was not evaluated.
    """
    first, second = (source.of_entrant(name, "--compare").runs for name in pair)
    found = [each for each in _compared(first, second) if each.n_pairs]
    if not found:
        shared = f"{pair[0]!r} and {pair[1]!r} have observed no sample of the same item"
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
        those = ", ".join(sorted(known)) or "nobody was evaluated yet"
        raise ConfigurationError([f"{option} {name!r} is none of: {those}"])
