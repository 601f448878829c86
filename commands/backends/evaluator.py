"""`Evaluator`: run evaluations from Python, of a model in training or of a checkpoint."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from commands.backends._subject import EvaluatedModel, Trainer, checkpoint_model, trainer_model
from commands.backends.huggingface.generator import HfGenerator
from commands.backends.huggingface.reader import HfLikelihoodModel
from commands.decisions.recorder import EvaluationRecorder
from commands.errors import ConfigurationError
from commands.evaluating.evaluate import (
    PlannedEvaluation,
    evaluate_all,
    owed_samples,
    plan_evaluation,
)
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.registry import evaluation_of
from commands.evaluating.samples import Inference
from commands.ports import OnProgress, no_progress
from commands.settings.inputs import read_bank
from commands.settings.schema import GenerationSection, PromptsSection
from commands.settings.sections import EvaluationOptions, EvaluationSection, Reduce, Section
from ledger.errors import FolderTaken
from ledger.events.registration import Entrant
from ledger.identity import StreamId
from ledger.storage.files import write_whole
from ledger.store import Ledger
from projections.artifacts.evaluations import GROUP, results_file, results_of
from projections.evaluations.state import EVALUATION_EVENTS, evaluations_of
from projections.fold import fold


class EvaluatorConfig(Section):
    """The tables of an evaluation job without a tournament."""

    generation: GenerationSection = GenerationSection()
    prompts: PromptsSection | None = None  # the bank, for evaluations on it
    evaluations: tuple[EvaluationSection, ...] = ()


def parse_config(tables: Mapping[str, Any]) -> EvaluatorConfig:
    """Validate the tables of a configuration.

    Raises:
        ConfigurationError: Keys are unknown or values out of range; all faults are listed.
    """
    try:
        return EvaluatorConfig.model_validate(tables)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, each['loc']))} is {each['input']!r}: {each['msg']}"
            for each in error.errors()
        ]
        raise ConfigurationError(faults) from error


def read_config(path: Path) -> EvaluatorConfig:
    """Read the configuration that a job was started with.

    Raises:
        ConfigurationError: The file is missing, unreadable or wrong.
    """
    if not path.exists():
        raise ConfigurationError([f"{path} does not exist; pass runtime_cfg to start the job"])
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fault = f"{path} cannot be read: {error}; pass runtime_cfg to replace it"
        raise ConfigurationError([fault]) from error
    return parse_config(tables)


def write_config(path: Path, config: EvaluatorConfig) -> None:
    """Write a configuration, for resuming the job.

    Raises:
        CannotWrite: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, [config.model_dump_json(indent=2).encode(), b"\n"])


@dataclass(frozen=True)
class ExecutionSpec:
    """A job's name and folder: <root>/results/<project>/<group>/<name>/."""

    name: str
    project: str = "general"
    group: str = GROUP
    root: Path = Path()

    @property
    def folder(self) -> Path:
        """The folder of the job's ledger and results.json."""
        return self.root / "results" / self.project / self.group / self.name


_LEDGER, _CONFIG, _RESULTS = "evaluations.db", "config.json", "results.json"


class EvaluationRequest(NamedTuple):
    """An evaluation, and the options to run it with."""

    evaluation: Evaluation
    options: EvaluationOptions = EvaluationOptions()


class ConfiguredEvaluator(NamedTuple):
    """An evaluator, and the configuration that it was made from."""

    evaluator: "Evaluator"
    config: EvaluatorConfig


class Evaluator:
    """Runs evaluations of one model, records the observations, and writes results.json.

    Each job has its own ledger, so a stopped run can be resumed, and `tourney project metrics
    --ledger` can read it.
    """

    def __init__(
        self,
        spec: ExecutionSpec,
        subject: EvaluatedModel,
        evaluations: Sequence[EvaluationRequest],
        generation: GenerationSection,
    ) -> None:
        """Prepare the job; nothing is written yet.

        Raises:
            ConfigurationError: Two evaluations have the same name.
        """
        names = [each.evaluation.name for each in evaluations]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError([f"several evaluations are called {', '.join(twice)}"])
        self.spec = spec
        self.evaluations = tuple(evaluations)
        self._subject = subject
        self._generation = generation

    @classmethod
    def from_trainer(
        cls,
        trainer: Trainer,
        evaluations: Sequence[EvaluationRequest],
        spec: ExecutionSpec,
        generation: GenerationSection | None = None,
    ) -> Self:
        """Make an evaluator of a trainer's model, as it is at each call.

        Raises:
            ConfigurationError: Entrants cannot have the model's float type, or two evaluations have
                the same name.
        """
        subject = trainer_model(trainer, spec.name)
        return cls(spec, subject, evaluations, generation or GenerationSection())

    @classmethod
    def from_checkpoint(
        cls,
        suffix: str | Path,
        spec: ExecutionSpec,
        runtime_cfg: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
    ) -> ConfiguredEvaluator:
        """Make an evaluator of a checkpoint: weights, or an adapter that names its base weights.

        Args:
            suffix: The folder, relative to the spec's root.
            spec: The job.
            runtime_cfg: Tables of `EvaluatorConfig`, saved if valid; None: those saved before.
            resume: Continue the job's ledger; if False, there must be none.

        Raises:
            ConfigurationError: The configuration is missing, unreadable or wrong.
            FolderTaken: The job was started before, and `resume` is False.
            WeightsError: A file is missing or unreadable, or does not fit.
        """
        if not resume and (spec.folder / _LEDGER).exists():
            raise FolderTaken(spec.folder)
        kept = spec.folder / _CONFIG
        config = read_config(kept) if runtime_cfg is None else parse_config(runtime_cfg)
        bank = () if config.prompts is None else read_bank(spec.root / config.prompts.bank)
        evaluations = [
            EvaluationRequest(evaluation_of(section, spec.root, bank), section.options)
            for section in config.evaluations
        ]
        subject = checkpoint_model(spec.root / suffix, spec.name, config.generation)
        evaluator = cls(spec, subject, evaluations, config.generation)
        if runtime_cfg is not None:
            write_config(kept, config)
        return ConfiguredEvaluator(evaluator, config)

    def evaluate(
        self,
        reduce: Reduce = "mean",
        *,
        return_intermediates: bool = False,
        **chosen: Any,  # noqa: ANN401  # the fields of EvaluationOptions, checked there
    ) -> dict[str, Any]:
        """Run all evaluations without recording, for instance during training.

        Args:
            reduce: See `Evaluation.reduce`.
            return_intermediates: Also return each sample's tokens.
            chosen: `EvaluationOptions` that go before each evaluation's own.

        Returns:
            By the name of the evaluation: a score, or the scores (n,), or either in a pair with a
            list of `Intermediates`.
        """
        inference = self._inference(self._subject.entrant)
        with self._subject.in_evaluation_mode():
            return {
                each.evaluation.name: each.evaluation(
                    inference,
                    reduce,
                    return_intermediates=return_intermediates,
                    **{**each.options.model_dump(), **chosen},
                )
                for each in self.evaluations
            }

    @property
    def done(self) -> bool:
        """Whether the ledger has all planned samples, for these options and weights."""
        path = self.spec.folder / _LEDGER
        if not path.exists():
            return False
        with Ledger.read_only(path) as ledger:
            events = ledger.read(types=EVALUATION_EVENTS)
            known = fold(evaluations_of(StreamId(self.spec.name)), events)
        return not any(each.n_owed for each in owed_samples(known, self._planned()))

    def run(self, on_progress: OnProgress = no_progress) -> None:
        """Observe the owed samples, and write results.json from the ledger."""
        self.spec.folder.mkdir(parents=True, exist_ok=True)
        stream = StreamId(self.spec.name)
        with Ledger.open(self.spec.folder / _LEDGER) as ledger, self._subject.in_evaluation_mode():
            recorder = EvaluationRecorder(ledger, stream)
            evaluate_all(recorder, self._planned(), on_progress=on_progress)
            results = results_of(
                self.spec.name,
                recorder.state.runs,
                project=self.spec.project,
                group=self.spec.group,
                as_of=ledger.head,
            )
        write_whole(self.spec.folder / _RESULTS, [results_file(results)])

    def __call__(self) -> None:
        """Run, unless everything is done."""
        if not self.done:
            self.run()

    def _planned(self) -> list[PlannedEvaluation]:
        inference = self._inference(self._subject.named())
        return [
            plan_evaluation(each.evaluation, inference, each.options) for each in self.evaluations
        ]

    def _inference(self, entrant: Entrant) -> Inference:
        settings, subject = self._generation, self._subject
        how = (settings.batch_tokens, subject.device, settings.cpu_threads, subject.load)
        return Inference(
            entrant, cache(lambda: HfGenerator(*how)), cache(lambda: HfLikelihoodModel(*how))
        )
