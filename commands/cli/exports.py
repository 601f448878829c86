"""`tourney export`: write events, battles, ratings or evaluation results to a file."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from commands.cli.project.metrics import EvaluationReading, read_evaluations
from commands.cli.shared import options
from commands.cli.shared.command import command
from commands.cli.shared.imported_set import read_set, require_no_tournament
from commands.cli.shared.ledger import head_at
from commands.cli.shared.output import say, write_lines
from commands.cli.shared.reading import Selection, read_verdicts
from commands.cli.tables.bradley_terry.notes import order_notes
from commands.cli.tables.metrics import NOTHING_EVALUATED
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import bradley_terry_parameters, bradley_terry_settings
from commands.runs.workspace import require_sound
from ledger.events.ratings import BradleyTerryParameters
from ledger.exchange import export_lines
from ledger.identity import Fields
from ledger.storage.files import write_whole
from ledger.store import Ledger
from projections.artifacts.evaluations import results_file, results_of
from projections.artifacts.judgearena import of_imported, of_settlements, rating_records
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import Leaderboard, board_of
from projections.ratings.tournament import by_dimension

app = typer.Typer(no_args_is_help=True)
_SEVERAL: Final = (
    "the file holds {} dimensions, in the field `dimension`, which readers of JudgeArena's format"
    " ignore: export one of them with --dimension"
)

OutputOption: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file to write. Default: standard output.")
]
NameOption: TypeAlias = Annotated[
    str | None,
    options.of_set("Export this imported set. Default: the tournament's own battles."),
]


@app.command(name="events")
@command
def export_events(
    paths: options.Paths, output: OutputOption = None, as_of: options.AsOf = None
) -> None:
    """Write all events as lines of JSON.

    Example: tourney export events -o events.jsonl
    """
    with Ledger.read_only(paths.of_ledger) as opened:
        require_sound(opened)
        _write(export_lines(opened.rows(until=head_at(opened, as_of).position)), output)


@app.command(name="battles")
@command
def export_battles(
    selection: Selection, output: OutputOption = None, name: NameOption = None
) -> None:
    """Write battles in JudgeArena's format.

    Example: tourney export battles -o battles.jsonl
    """
    if name is None:
        source = _said(selection)
        n_dimensions = len({record["dimension"] for record in _records(source)})
        if n_dimensions > 1:
            say(_SEVERAL.format(n_dimensions))
        _write(_lines(_records(source)), output)
    else:
        require_no_tournament(selection)
        _write(_lines(of_imported(read_set(selection, name).events)), output)


@app.command(name="elo-ratings")
@command
def export_elo_ratings(
    selection: Selection, output: OutputOption = None, name: NameOption = None
) -> None:
    """Write Bradley-Terry ratings in JudgeArena's format.

    Example: tourney export elo-ratings -o elo_ratings.json
    """
    if name is None:
        records = _ratings_of_tournament(_said(selection))
    else:
        records = _ratings_of_imported(selection, name)
    text = json.dumps(records, indent=2, allow_nan=False)
    _write([f"{text}\n".encode()], output)


@app.command(name="results")
@command
def export_results(
    paths: options.Paths,
    output: OutputOption = None,
    entrant: options.Entrant = None,
    evaluation: options.Evaluation = None,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
) -> None:
    """Write an entrant's evaluation results as results.json.

    Each evaluation has one headline number and all its metrics.

    Example: tourney export results --entrant base
    """
    source = read_evaluations(paths, tournament, as_of)
    source = source.only("--evaluation", evaluation).only("--entrant", entrant)
    results = results_of(
        _only_entrant(source), source.runs, project=source.stream, as_of=source.head
    )
    _write([results_file(results)], output)


def _only_entrant(source: EvaluationReading) -> str:
    """Return the only entrant that was evaluated."""
    entrants = sorted({run.plan.entrant.label for run in source.runs})
    if not entrants:
        raise ConfigurationError([NOTHING_EVALUATED])
    if len(entrants) > 1:
        known = ", ".join(entrants)
        raise ConfigurationError(
            [f"results.json holds one entrant; evaluated: {known}; choose one with --entrant"]
        )
    return entrants[0]


def _said(selection: Selection) -> JudgedTournament:
    """Read a tournament, and print how many of its pairs have which outcome."""
    source = read_verdicts(selection)
    for account in source.accounts:
        say(account)
    return source


def _records(source: JudgedTournament) -> Iterator[Fields]:
    """Yield a tournament's battles by dimension, each with its dimension."""
    for dimension, settlements in source.settlements.items():
        for record in of_settlements(settlements, source.judge_model):
            yield record | {"dimension": dimension}


def _ratings_of_tournament(source: JudgedTournament) -> Fields:
    """Rate a tournament's entrants by its recorded settings; print which are not comparable."""
    parameters = bradley_terry_parameters(bradley_terry_settings(source.state), {})
    boards = by_dimension(source.settlements, parameters, source.roster)
    _say_order(boards)
    return rating_records(
        boards, parameters, arena=source.state.stream, judge_model=source.judge_model
    )


def _ratings_of_imported(selection: Selection, name: str) -> Fields:
    """Rate the entrants of imported battles by default settings; print which are not comparable."""
    require_no_tournament(selection)
    imported, parameters = read_set(selection, name), BradleyTerryParameters()
    among = rate_with_anchors(imported.battles, parameters, soft=True)
    judges, boards = imported.judges, [board_of(name, among.ratings)]
    _say_order(boards)
    return rating_records(
        boards,
        parameters,
        arena=name,
        judge_model=judges[0] if len(judges) == 1 else None,
        sources={entrant: among.source(entrant) for entrant in among.ratings.entrants},
    )


def _say_order(boards: Iterable[Leaderboard]) -> None:
    for board in boards:
        for note in order_notes(board):
            say(note)


def _lines(records: Iterable[Fields]) -> Iterator[bytes]:
    """Yield lines of JSON, escaped to ASCII, which is safe on a terminal."""
    for record in records:
        yield f"{json.dumps(record, allow_nan=False)}\n".encode()


def _write(lines: Iterable[bytes], output: Path | None) -> None:
    if output is None:
        write_lines(lines)
    else:
        write_whole(output, lines)
