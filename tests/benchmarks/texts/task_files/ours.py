"""Task files evaluated as `tourney evaluate` does, on a ledger of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from commands.backends.wiring import make_inference_factory, open_parquet
from commands.decisions.recorder import EvaluationRecorder
from commands.entrants.checkpoint import read_checkpoint
from commands.evaluating.evaluate import PlannedEvaluation, evaluate_all
from commands.evaluating.plan import plan_alone
from commands.evaluating.samples import Inference
from commands.ports import no_progress
from commands.settings.schema import GenerationSection
from commands.settings.sections import AnyEntrantSection, EvaluationOptions
from ledger.events.evaluations import AnswerObserved
from ledger.events.registration import Entrant
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import metrics_of

GENERATION: Final = GenerationSection(dtype="float32", device="cpu", cpu_threads=1)
DEFAULT: Final = EvaluationOptions()


class TaskResults(NamedTuple):
    """Metrics by their names, and the filtered answers of rollouts in the order of the items."""

    metrics: Mapping[str, float | None]
    answers: Sequence[str]


class Alone(NamedTuple):
    """Settings of weights by themselves."""

    generation: GenerationSection
    entrants: Sequence[AnyEntrantSection] = ()


def tiny(weights: Path) -> Entrant:
    """Return the entrant with these weights."""
    return read_checkpoint(weights, "tiny", GENERATION)


def evaluate(
    weights: Path, files: Sequence[Path], ledger: Path, options: EvaluationOptions = DEFAULT
) -> dict[str, TaskResults]:
    """Return the results of task files, by the name of the evaluation."""
    inference = make_inference_factory(Alone(GENERATION))(tiny(weights))
    return evaluated(planned_files(inference, files, options), ledger)


def planned_files(
    inference: Inference, files: Sequence[Path], options: EvaluationOptions = DEFAULT
) -> tuple[PlannedEvaluation, ...]:
    """Read task files and their data."""
    return plan_alone([*map(str, files)], inference, open_parquet, options)


def evaluated(planned: Sequence[PlannedEvaluation], ledger: Path) -> dict[str, TaskResults]:
    """Return the results of plans, which a ledger keeps."""
    with Ledger.open(ledger) as opened:
        recorder = EvaluationRecorder(opened, StreamId("tasks"))
        evaluate_all(recorder, planned, on_progress=no_progress)
        runs = {
            each.evaluation.id: recorder.state.run(recorder.plan(each.plan, each.registered))
            for each in planned
        }
    return {
        name: TaskResults(
            {each.name: each.estimate.value for each in metrics_of(run).metrics},
            [
                each.observation.cleaned
                for each in run.observed
                if isinstance(each.observation, AnswerObserved)
            ],
        )
        for name, run in runs.items()
    }
