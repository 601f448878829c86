"""`tourney export` and `report`: events, battles, ratings and results, in files and elsewhere."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from commands.auditing.soundness import require_sound
from commands.cli.project.bradley_terry import parameters_of
from commands.cli.project.metrics import NOTHING_EVALUATED, EvaluationReading, read_evaluations
from commands.cli.shared import options
from commands.cli.shared.output import parquet_of, say, write_lines
from commands.cli.shared.reading import read_outcomes
from commands.cli.shared.selection import (
    BATTLES,
    JUDGED,
    OF_LEDGER,
    OF_TOURNAMENT,
    Selected,
    Selection,
    selecting,
)
from commands.cli.tables.bradley_terry import order_notes
from commands.errors import ConfigurationError, joined_names
from commands.importing.formats import plain
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament, Perspective, judged_tournament
from commands.reading.parameters import require_anchor
from commands.reading.resolve import tournament_at
from commands.reading.rows import response_rows, results_now
from commands.report.battles import WhichBattles
from commands.report.every_eval_ever import records_of
from commands.report.page import page_of
from commands.report.published import card_of, summary_of, tracked_run
from commands.report.subject import Subject, subject_of
from ledger.events.imports import RatingSource
from ledger.events.ratings import BradleyTerryParameters
from ledger.exchange import export_lines
from ledger.identity import Fields, PromptId
from ledger.storage.files import cannot_write, write_whole
from ledger.store import Ledger, utc_now
from projections.artifacts.escaping import guarded
from projections.artifacts.evaluations import results_file, results_of
from projections.artifacts.judgearena import of_dimensions, of_imported, rating_records
from projections.evaluations.state import EvaluationRun
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import board_of
from projections.ratings.tournament import by_dimension
from projections.results.columns import csv_of
from projections.tournament.state import Tournament

_Record: TypeAlias = Mapping[str, object]
_SEVERAL: Final = (
    "the file holds {} dimensions, in the field `dimension`, which readers of JudgeArena's format"
    " ignore: export one of them with --dimension"
)
_BATTLES: Final[Mapping[str, type]] = {**plain.COLUMNS, "dimension": str}
_RESPONSES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("prompt_id", "prompt", "entrant", "response", "finish_reason"), str),
    "n_tokens": int,
}
Folder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The folder to write to; its files are replaced.")
]
RunName: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Name of the run. Default: the tournament's, with @POSITION."),
]


@selecting(*OF_LEDGER, "as_of")
def events(ctx: Selected, output: options.Output = None) -> None:
    """Write all events as lines of JSON.

    Example: tourney export events -o events.jsonl
    """
    with Ledger.read_only(ctx.selection.path) as opened:
        require_sound(opened)
        write(export_lines(opened.rows(until=ctx.selection.head_in(opened).position)), output)


@selecting(*BATTLES)
def battles(ctx: Selected, output: options.Output = None) -> None:
    """Write battles as JSON lines in JudgeArena's format, or as a plain table (.csv, .parquet).

    The file's suffix chooses the format: .csv, .jsonl or .parquet.

    Example: tourney export battles -o battles.csv
    """
    require_suffix(output, ".csv", ".jsonl", ".parquet")
    source = read_outcomes(ctx.selection)
    if isinstance(source, JudgedTournament):
        _say_accounts(source)
        records = [*of_dimensions(source.settlements, source.judge_model)]
        n_dimensions = len({record["dimension"] for record in records})
        if n_dimensions > 1:
            say(_SEVERAL.format(n_dimensions))
        write_records(records, output, _BATTLES)
    else:
        write_records(of_imported(source.events), output, plain.COLUMNS)


@selecting(*BATTLES)
def elo_ratings(
    ctx: Selected,
    output: options.Output = None,
    ties: options.Ties = None,
    anchor: options.Anchor = None,
) -> None:
    """Write Bradley-Terry ratings in JudgeArena's format.

    Options override the recorded settings. `tourney project bt --format csv` writes a table.

    Example: tourney export elo-ratings -o elo_ratings.json
    """
    require_suffix(output, ".json", hint="`tourney project bt --format csv` writes a table")
    source = read_outcomes(ctx.selection)
    parameters = parameters_of(source.settings("bradley_terry"), ties, anchor)
    require_anchor(parameters, source.roster)
    records = _ratings_of(source, parameters)
    text = json.dumps(records, indent=2, allow_nan=False)
    write([f"{text}\n".encode()], output)


@selecting(*OF_TOURNAMENT)
def results(
    ctx: Selected,
    output: options.Output = None,
    entrants: options.Entrants = None,
    evaluations: options.Evaluations = None,
) -> None:
    """Write an entrant's evaluation results as results.json.

    Each evaluation has one headline number and all its metrics. If the settings file is there, and
    an evaluation's code changed since, the recorded answers are scored again.

    Example: tourney export results --entrant base
    """
    source = read_evaluations(ctx.selection, evaluations, entrants)
    entrant = _only_entrant(source)
    runs = source.runs
    if ctx.selection.as_of is None:
        runs = _scored_by_code_of_today(source, ctx.selection.config)
    found = results_of(entrant, runs, project=source.stream, as_of=source.head)
    write([results_file(found)], output)


ReportFormat: TypeAlias = Literal["html", "md"]
_NAMES: Final[Mapping[ReportFormat, str]] = {"html": "HTML", "md": "Markdown"}
_BY_SUFFIX: Final[Mapping[str, ReportFormat]] = {".html": "html", ".htm": "html", ".md": "md"}


@selecting(*JUDGED)
def report(
    ctx: Selected,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file to write; - is standard output.",
            metavar="FILE",
            show_default="report.html; Markdown: standard output",
        ),
    ] = None,
    report_format: Annotated[
        ReportFormat | None,
        typer.Option(
            "--format",
            help="html is the page; md, the finding and ratings alone, for a pull request.",
            show_default="as the file's suffix says, else html",
        ),
    ] = None,
    battles: Annotated[
        WhichBattles, typer.Option(help="Which battles the page shows with their texts.")
    ] = "sample",
) -> None:
    """Write the report as one self-contained HTML file, or in short as Markdown.

    It shows who leads, the ratings, how far to trust the judges, money, battles and provenance.

    Example: tourney report -o report.html
    """
    chosen = _format_of(output, report_format)
    if output is None:
        output = Path("-" if chosen == "md" else "report.html")
    subject = read_subject(ctx.selection)
    text = summary_of(subject) if chosen == "md" else page_of(subject, battles)
    file = options.or_standard_output(output)
    write([text.encode()], file)
    if file is not None:
        say(f"written to {file}")


def read_subject(selection: Selection) -> Subject:
    """Read what a report shows of the selected tournament."""
    perspective = Perspective(selection.judge, selection.dimension)
    with Ledger.read_only(selection.path) as opened:
        head, stream = selection.head_in(opened), selection.stream_in(opened)
        state = tournament_at(opened, stream, head.position, selection.as_of)
        source = judged_tournament(state, selection.path, head.position, perspective)
        return subject_of(opened, results_now(source, head), is_run=False)


def _format_of(output: Path | None, asked: ReportFormat | None) -> ReportFormat:
    """Return the format that is asked for, by the file's suffix or by name."""
    if output is None or not output.suffix:
        return asked or "html"
    by_suffix = _BY_SUFFIX.get(output.suffix.lower())
    if by_suffix is None or asked not in (None, by_suffix):
        wanted = asked or "html"
        fault = f"--output {output}: the report is {_NAMES[wanted]}, not {output.suffix}"
        others = "" if asked else ", or .md for Markdown"
        raise ConfigurationError(
            [f"{fault}; name the file {output.with_suffix(f'.{wanted}')}{others}"]
        )
    return by_suffix


@selecting(*JUDGED)
def hub(ctx: Selected, folder: Folder) -> None:
    """Write battles and responses as a data set of the Hugging Face Hub.

    Its card, README.md, has the ratings. Add a licence, then publish the folder yourself with
    `hf upload`.

    Example: tourney export hub shared
    """
    subject = read_subject(ctx.selection)
    found = subject.results
    rows = map(plain.row_of, of_dimensions(found.settlements, found.judge.model))
    files = {
        "battles.parquet": parquet_of(_BATTLES, rows),
        "responses.parquet": parquet_of(_RESPONSES, _responses(found.tournament)),
        "README.md": card_of(subject).encode(),
    }
    _write_into(folder, files)
    path = shlex.quote(str(folder))
    say(f"publish it with `hf upload ORG/NAME {path} --repo-type dataset`")


def _responses(state: Tournament) -> Iterator[Fields]:
    texts = {prompt.prompt_id: prompt.text for prompt in state.bank}
    for row in response_rows(state):
        if row.text is not None:
            yield {
                "prompt_id": row.prompt,
                "prompt": texts[PromptId(row.prompt)],
                "entrant": row.entrant,
                "response": row.text,
                "finish_reason": row.finish_reason,
                "n_tokens": row.n_tokens,
            }


def _write_into(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        write_whole(folder / name, [content])
    say(f"written to {folder}: {joined_names([*files])}")


@selecting(*JUDGED)
def every_eval_ever(ctx: Selected, folder: Folder) -> None:
    """Write ratings as records of Every Eval Ever, by version 0.3.0 of its schema.

    There is a file for each rated entrant. Correct what is `unknown` in them before you submit
    them: your organization, and the maker of each model.

    Example: tourney export every-eval-ever records
    """
    records = [*records_of(read_subject(ctx.selection), utc_now())]
    if not records:
        raise ConfigurationError(["no entrant is rated yet; run `tourney apply judge`"])
    contents = {path: json.dumps(record, indent=2).encode() for path, record in records}
    _write_into(folder, contents)


@selecting(*JUDGED)
def mlflow(ctx: Selected, name: RunName = None) -> None:
    """Log ratings, intervals and the report as a run of MLflow.

    Its client must be installed; MLFLOW_TRACKING_URI says where to. The experiment is called as
    the tournament.

    Example: tourney export mlflow --name with-new-prompt
    """
    _log(ctx, "mlflow", name)


@selecting(*JUDGED)
def wandb(ctx: Selected, name: RunName = None) -> None:
    """Log ratings, intervals and the report as a run of Weights & Biases.

    Its client must be installed, and logged in. The project is called as the tournament.

    Example: tourney export wandb --name with-new-prompt
    """
    _log(ctx, "wandb", name)


def _log(ctx: Selected, tracker: str, name: str | None) -> None:
    run = tracked_run(read_subject(ctx.selection), name)
    place = import_module("commands.backends.wiring").log_run(tracker, run)
    say(f"logged as {run.name!r} of {run.project!r} in {place}")


def _scored_by_code_of_today(source: EvaluationReading, config: Path) -> tuple[EvaluationRun, ...]:
    # Imported here: it loads settings and evaluations, which no other export needs.
    rescoring = import_module("commands.evaluating.registry")
    readers = import_module("commands.backends.wiring").READERS
    runs = (*rescoring.rescore_changed(source.runs, source.stream, config, readers),)
    for new, old in zip(runs, source.runs, strict=True):
        if new != old:
            say(f"{new.plan.evaluation} is scored again: its code changed since it was evaluated")
    return runs


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


def _say_accounts(source: JudgedTournament) -> None:
    """Print how many of a tournament's pairs have which outcome."""
    for account in source.accounts:
        say(account)


def _ratings_of(
    source: JudgedTournament | SelectedSet, parameters: BradleyTerryParameters
) -> Fields:
    """Rate the entrants; print which are not comparable."""
    sources: dict[str, RatingSource] = {}
    if isinstance(source, JudgedTournament):
        _say_accounts(source)
        arena, judge_model = str(source.state.stream), source.judge_model
        boards = [*by_dimension(source.columns, parameters, source.roster)]
    else:
        among = rate_with_anchors(source.battles, parameters, soft=parameters.ties == "half")
        arena, judge_model = source.name, source.judge_id
        boards = [board_of(source.name, among.ratings)]
        sources = {entrant: among.source(entrant) for entrant in among.ratings.entrants}
    for note in chain.from_iterable(map(order_notes, boards)):
        say(note)
    return rating_records(
        boards, parameters, arena=arena, judge_model=judge_model, sources=sources or None
    )


def require_suffix(
    output: Path | None, *known: str, hint: str = "the suffix chooses the format"
) -> None:
    """Refuse a file of an unknown kind before anything is read; a pipe is as standard output."""
    if output is None or (output.exists() and not output.is_file() and not output.is_dir()):
        return
    if output.suffix not in known:
        fault = f"--output {output}: the suffix is {output.suffix!r}, but must be"
        kinds = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
        raise ConfigurationError([f"{fault} {kinds}; {hint}"])


def write_records(
    records: Iterable[_Record], output: Path | None, columns: Mapping[str, type]
) -> None:
    """Write battles as lines of JSON, or as a table to a file that is named .csv or .parquet.

    The columns are those of the table.
    """
    match output and output.suffix:
        case ".csv":
            # As RFC 4180 has it: a line ends in CR LF, so that either is quoted in a cell.
            rows = (_csv_cells(columns, plain.row_of(record)) for record in records)
            write([csv_of(columns, rows, "\r\n").encode()], output)
        case ".parquet":
            write([parquet_of(columns, map(plain.row_of, records))], output)
        case _:
            # Escaped to ASCII, which is safe on a terminal.
            write(
                (f"{json.dumps(record, allow_nan=False)}\n".encode() for record in records), output
            )


def write(lines: Iterable[bytes], output: Path | None) -> None:
    """Write lines to a file, completely or not at all, or to standard output."""
    if output is None:
        write_lines(lines)
    else:
        write_whole(output, lines)


def _csv_cells(columns: Iterable[str], row: _Record) -> list[object]:
    cells = (row.get(name) for name in columns)
    return [guarded(cell) if isinstance(cell, str) else cell for cell in cells]
