"""`tourney export hub`, `every-eval-ever`, `mlflow` and `wandb`: results for other places."""

import json
import shlex
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from commands.cli.exports import read_subject
from commands.cli.shared.output import parquet_of, say
from commands.cli.shared.selection import JUDGED, Selected, selecting
from commands.errors import ConfigurationError, joined_names
from commands.importing.formats import plain
from commands.importing.formats.rows import Fields
from commands.reading.rows import response_rows
from commands.report.every_eval_ever import records_of
from commands.report.published import card_of, tracked_run
from ledger.identity import PromptId
from ledger.storage.files import cannot_write, write_whole
from ledger.store import utc_now
from projections.artifacts.judgearena import of_dimensions
from projections.tournament.state import Tournament

Folder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The folder to write to; its files are replaced.")
]
RunName: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Name of the run. Default: the tournament's, with @POSITION."),
]
_BATTLES: Final[Mapping[str, type]] = {**plain.COLUMNS, "dimension": str}
_RESPONSES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("prompt_id", "prompt", "entrant", "response", "finish_reason"), str),
    "n_tokens": int,
}


@selecting(*JUDGED)
def hub(ctx: Selected, folder: Folder) -> None:
    """Write battles and responses as a data set of the Hugging Face Hub.

    Its card, README.md, has the ratings. Add a licence, then publish the folder yourself with
    `hf upload`.

    Example: tourney export hub shared
    """
    subject = read_subject(ctx.selection)
    results = subject.results
    battles = map(plain.row_of, of_dimensions(results.settlements, results.judge.model))
    files = {
        "battles.parquet": parquet_of(_BATTLES, battles),
        "responses.parquet": parquet_of(_RESPONSES, _responses(results.tournament)),
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
