"""`tourney evaluate`: evaluate one folder of weights, without a tournament."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from commands.backends.wiring import READERS, fetch_snapshot, inferences_on
from commands.cli.project.metrics import EvaluationReading, metrics_table
from commands.cli.shared import options
from commands.cli.shared.output import say, write_table
from commands.cli.shared.terminal import progress_on_stderr
from commands.cli.tables.render import Format
from commands.decisions.recorder import EvaluationRecorder
from commands.entrants.chats import ChatForm
from commands.entrants.files import read_checkpoint
from commands.errors import counted
from commands.evaluating.evaluate import CODE_CHANGED, PlannedEvaluation, evaluate_all
from commands.evaluating.plan import plan_alone
from commands.evaluating.registry import STANDALONE
from commands.ports import OnProgress
from commands.runs.workspace import open_alone
from commands.settings.schema import GenerationSection
from commands.settings.sections import AnyEntrantSection, EvaluationOptions
from ledger.identity import StreamId

_STREAM: Final = StreamId("evaluations")


def evaluate(
    weights: Annotated[
        Path,
        typer.Argument(
            metavar="WEIGHTS",
            help="A folder of weights, a folder of an adapter that names its base weights, or"
            " `org/name` on the Hugging Face Hub, or its revision v1 as `org/name@v1`.",
        ),
    ],
    uses: Annotated[
        list[str],
        typer.Option(
            metavar="EVALUATION",
            help="file.py:Class, module:Class, a task of lm-evaluation-harness (name or .yaml), or"
            f" {' or '.join(STANDALONE)}. Repeatable.",
        ),
    ],
    adapter: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A LoRA adapter to merge into the weights. Repeatable."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many items of each evaluation.")
    ] = None,
    chat: Annotated[
        ChatForm | None,
        typer.Option(
            help="Use the chat template: turns (each example is two turns) or one-turn; none: plain"
            " text, the default except for rollouts."
        ),
    ] = None,
    ledger: Annotated[
        Path,
        typer.Option("--ledger", "-l", help="The ledger file. It may hold other weights, too."),
    ] = Path("evaluations.db"),
    engine: options.Engine = "local",
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate weights without a tournament.

    Samples that the ledger already holds are not run again.

    Example: tourney evaluate out/checkpoint-60 --uses mine.py:Doses --limit 200
    """
    generation = GenerationSection()
    how = EvaluationOptions(length=limit, chat=chat)
    entrant = read_checkpoint(
        weights,
        f"{_label(weights, adapter or ())}{'' if chat is None else f' [{chat}]'}",
        generation,
        adapter or (),
        fetch=fetch_snapshot,
    )
    with inferences_on(engine, _Alone(generation), say) as inference_of:
        planned = plan_alone(uses, inference_of(entrant), READERS, how)
        with progress_on_stderr() as on_progress:
            reading = _evaluated(ledger, planned, on_progress)
    write_table(metrics_table(reading), Format.JSON if as_json else output_format)
    say(f"on record in {ledger}: see `tourney project metrics -l {shlex.quote(str(ledger))}`")


class _Alone(NamedTuple):
    """Settings for weights without a tournament."""

    generation: GenerationSection
    entrants: Sequence[AnyEntrantSection] = ()


def _evaluated(
    path: Path, planned: Sequence[PlannedEvaluation], on_progress: OnProgress
) -> EvaluationReading:
    """Observe what is missing; return all that is on record of the plans."""
    with open_alone(path, say) as opened:
        recorder = EvaluationRecorder(opened, _STREAM)
        done = evaluate_all(recorder, planned, on_progress=on_progress)
        head = opened.head
    if done.n_rescored:
        say(f"{counted(done.n_rescored, 'recorded sample')} got another score: {CODE_CHANGED}")
    plans = [recorder.plan(evaluation.plan, evaluation.registered) for evaluation in planned]
    runs = tuple(map(recorder.state.run, plans))
    return EvaluationReading(_STREAM, head, runs, recorder.state)


def _label(weights: Path, adapters: Sequence[Path]) -> str:
    """Name an entrant by its folders, as seen from here."""
    here = Path.cwd()
    folders = (folder.absolute() for folder in (weights, *adapters))
    return "+".join(
        str(folder.relative_to(here) if here in folder.parents else folder) for folder in folders
    )
