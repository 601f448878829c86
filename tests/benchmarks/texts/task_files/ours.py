"""Task files evaluated as `tourney evaluate` does, on a ledger of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from commands.backends.wiring import READERS, make_inference_factory
from commands.decisions.recorder import EvaluationRecorder
from commands.entrants.checkpoint import read_checkpoint
from commands.evaluating.evaluate import PlannedEvaluation, evaluate_all
from commands.evaluating.plan import plan_alone
from commands.evaluating.samples import Inference
from commands.ports import (
    Continuation,
    ContinuationLikelihood,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    LikelihoodFailure,
    no_progress,
)
from commands.settings.schema import GenerationSection
from commands.settings.sections import AnyEntrantSection, EvaluationOptions
from ledger.events.evaluations import AnswerObserved
from ledger.events.registration import Entrant
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import metrics_of

GENERATION: Final = GenerationSection(dtype="float32", device="cpu")
DEFAULT: Final = EvaluationOptions()
Ids = tuple[int, ...]


class TaskResults(NamedTuple):
    """Metrics by their names, and what was answered and kept of it, in the order of the items."""

    metrics: Mapping[str, float | None]
    answers: Sequence[tuple[str, str]]


class Alone(NamedTuple):
    """Settings of weights by themselves."""

    generation: GenerationSection
    entrants: Sequence[AnyEntrantSection] = ()


@dataclass(frozen=True)
class NotingInference:
    """An inference as its own generator and reader, which notes the tokens that it reads."""

    real: Inference
    texts: dict[tuple[Ids, int], float] = field(default_factory=dict)
    """Log-likelihoods, by the tokens and the length of the context."""
    prompts: set[Ids] = field(default_factory=set)

    @property
    def inference(self) -> Inference:
        """The inference to evaluate."""
        return replace(self.real, make_generator=lambda: self, make_likelihood_model=lambda: self)

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield what the real one yields."""
        for batch in self.real.make_generator().generate(tasks):
            self.prompts.update(
                each.prompt_ids for each in batch if isinstance(each, GeneratedText)
            )
            yield batch

    def log_likelihoods(
        self, continuations: Sequence[Continuation]
    ) -> Iterator[tuple[ContinuationLikelihood | LikelihoodFailure, ...]]:
        """Yield what the real one yields."""
        for batch in self.real.require_likelihoods("any")().log_likelihoods(continuations):
            for each in batch:
                assert isinstance(each, ContinuationLikelihood)
                read = each.context_ids + each.text_ids
                self.texts[read, len(each.context_ids)] = each.log_likelihood
            yield batch


def tiny(weights: Path) -> Entrant:
    """Return the entrant with these weights."""
    return read_checkpoint(weights, "tiny", GENERATION)


def noting(weights: Path) -> NotingInference:
    """Return the inference of these weights."""
    return NotingInference(make_inference_factory(Alone(GENERATION))(tiny(weights)))


def planned_files(
    inference: Inference, files: Sequence[Path], options: EvaluationOptions = DEFAULT
) -> tuple[PlannedEvaluation, ...]:
    """Read task files and their data."""
    return plan_alone([*map(str, files)], inference, READERS, options)


def evaluated(planned: Sequence[PlannedEvaluation], ledger: Path) -> dict[str, TaskResults]:
    """Return the results of plans, which a ledger keeps, by the name of the evaluation."""
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
                (each.observation.text, each.observation.cleaned)
                for each in run.observed
                if isinstance(each.observation, AnswerObserved)
            ],
        )
        for name, run in runs.items()
    }
