"""`Evaluator`: run evaluations from Python, of a model in training or of a checkpoint."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, TypeVar

from commands.backends.huggingface.local import LocalModels
from commands.backends.jobs.job import (
    EvaluationArgument,
    EvaluatorConfig,
    ExecutionSpec,
    ReportTarget,
    options_of,
    parse_config,
    read_config,
    reporter_to,
    requests_of,
    write_config,
)
from commands.backends.jobs.ranks import Call, on_first_rank
from commands.backends.jobs.subject import EvaluatedModel, Trainer, checkpoint_model, trainer_model
from commands.backends.wiring import READERS, open_dataset
from commands.decisions.recorder import EvaluationRecorder
from commands.errors import ConfigurationError, counted
from commands.evaluating.evaluate import (
    CODE_CHANGED,
    PlannedEvaluation,
    evaluate_all,
    is_done,
    plan_evaluation,
)
from commands.evaluating.evaluation import warn_of_lost
from commands.evaluating.registry import EvaluationSources, table_evaluations
from commands.evaluating.samples import Inference, ObservedSample
from commands.evaluating.user_code import Scores, blame_evaluation, require_reduce
from commands.importing.bank import bank_named
from commands.ports import OnProgress, no_progress
from commands.settings.schema import GenerationSection
from commands.settings.sections import Reduce
from commands.settings.toml import allows_network
from ledger.errors import NoLedger
from ledger.events.evaluations import SampleObserved, UnscorableReason
from ledger.events.registration import Entrant
from ledger.identity import StreamId
from ledger.storage.files import write_whole
from ledger.storage.lock import Holder
from ledger.store import Ledger
from projections.artifacts.evaluations import headline, results_file, results_of
from projections.evaluations.metrics import metrics_of
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    Evaluations,
    SampleKey,
    evaluations_of,
    labels_of,
)
from projections.fold import fold

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_LEDGER, _CONFIG, _RESULTS = "evaluations.db", "config.json", "results.json"
Result = TypeVar("Result")


class ConfiguredEvaluator(NamedTuple):
    """An evaluator, and the configuration that it was made from."""

    evaluator: "Evaluator"
    config: EvaluatorConfig


class Evaluator:
    """Runs evaluations of one model, records the observations, and writes results.json.

    Each job has its own ledger, so a stopped run can be resumed, and `tourney project metrics
    --ledger` can read it. In a distributed training the first process does everything, and the
    others get its results.
    """

    def __init__(
        self,
        spec: ExecutionSpec,
        subject: EvaluatedModel,
        evaluations: Iterable[EvaluationArgument],
        generation: GenerationSection,
        report_to: Iterable[ReportTarget] = (),
    ) -> None:
        """Prepare the job; nothing is written yet.

        Raises:
            ConfigurationError: An argument is no evaluation, an option is wrong, two evaluations
                have the same name, or what is reported to is not installed.
        """
        self.spec = spec
        self._reporters = [reporter_to(each, spec) for each in report_to]
        self.evaluations = requests_of(evaluations)
        self._subject = subject
        self._generation = generation

    @classmethod
    def from_trainer(
        cls,
        trainer: Trainer,
        evaluations: Iterable[EvaluationArgument],
        spec: ExecutionSpec,
        generation: GenerationSection | None = None,
        *,
        report_to: Iterable[ReportTarget] = (),
    ) -> Self:
        """Make an evaluator of a trainer's model, as it is at each call.

        Args:
            trainer: Has the model, its tokenizer and the step.
            evaluations: Each alone, or with options.
            spec: The job.
            generation: How the model generates.
            report_to: Where `run` reports the metrics of each step, too.

        Raises:
            ConfigurationError: The trainer has no tokenizer, entrants cannot have the model's float
                type, an evaluation cannot be run, or what is reported to is not installed.
        """
        subject = trainer_model(trainer, spec.name)
        return cls(spec, subject, evaluations, generation or GenerationSection(), report_to)

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
                Without `generation.dtype` the weights keep their float type.
            resume: Continue the job's ledger; if False, there must be none.

        Raises:
            ConfigurationError: The configuration is missing, unreadable or wrong, or the job was
                started before and `resume` is False.
            WeightsError: A file is missing or unreadable, or does not fit.
        """
        kept, begun = spec.folder / _CONFIG, spec.folder / _LEDGER
        if not resume and _first(spec, "begun", begun.exists):
            fault = f"{begun} exists already; pass resume=True to go on with it, or change the spec"
            raise ConfigurationError([fault])
        config = read_config(kept) if runtime_cfg is None else parse_config(runtime_cfg)
        named = config.prompts
        bank = () if named is None else bank_named(named.bank, spec.root, open_dataset)
        sources = EvaluationSources(spec.root, bank, READERS)
        evaluations = [
            (evaluation, section.options.model_dump())
            for section in config.evaluations
            for evaluation in table_evaluations(section, sources)
        ]
        subject = checkpoint_model(spec.root / suffix, spec.name, config.generation)
        evaluator = cls(spec, subject, evaluations, config.generation)
        if runtime_cfg is not None:
            _first(spec, "config", lambda: write_config(kept, config))
        return ConfiguredEvaluator(evaluator, config)

    def evaluate(
        self,
        reduce: Reduce = "mean",
        return_intermediates: bool = False,  # as in the seed
        **chosen: Any,  # noqa: ANN401  # the fields of EvaluationOptions, checked there
    ) -> dict[str, Any]:
        """Run all evaluations without recording, for instance during training.

        Samples of these weights that `run` recorded are read, unless their tokens are wanted, too.

        Args:
            reduce: See `Evaluation.reduce`.
            return_intermediates: Also return each sample's tokens.
            chosen: `EvaluationOptions` that go before each evaluation's own.

        Returns:
            By the name of the evaluation: a score, or the scores (n,), or either in a pair with a
            list of `Intermediates`.

        Raises:
            ConfigurationError: An argument is wrong.
        """
        require_reduce(reduce)
        options_of(chosen)
        arguments = {"reduce": reduce, "return_intermediates": return_intermediates, **chosen}
        what = f"evaluate({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        return self._on_first(
            what, lambda: self._evaluate(reduce, chosen, rows=return_intermediates)
        )

    def _evaluate(self, reduce: Reduce, chosen: Mapping[str, Any], *, rows: bool) -> dict[str, Any]:
        known = None if rows else self._known()
        with self._subject.in_evaluation_mode():
            if known is not None:
                planned = self._planned(chosen)
                return {
                    evaluation.evaluation.id: _score(evaluation, known, reduce)
                    for evaluation in planned
                }
            inference = self._inference(self._subject.entrant)
            return {
                evaluation.id: evaluation(
                    inference, None, reduce, rows, **{**options.model_dump(), **chosen}
                )
                for evaluation, options in self.evaluations
            }

    @property
    def done(self) -> bool:
        """Whether the ledger has all planned samples, for these options and weights, scored."""
        return self._on_first("done", lambda: self._recorded() is not None)

    def _known(self) -> Evaluations | None:
        """Return what is on record; None: there is no ledger."""
        try:
            with Ledger.read_only(self.spec.folder / _LEDGER) as ledger:
                events = ledger.read(types=EVALUATION_EVENTS)
                return fold(evaluations_of(StreamId(self.spec.name)), events)
        except NoLedger:
            return None

    def _recorded(self) -> "RecordedScores | None":
        """Return the scores of these weights if all samples are on record, scored."""
        evaluations = self._known()
        if evaluations is None:
            return None
        planned = self._planned()
        is_recorded = all(is_done(evaluations, evaluation) for evaluation in planned)
        return _recorded_scores(planned, evaluations) if is_recorded else None

    def run(self, on_progress: OnProgress = no_progress) -> dict[str, float]:
        """Observe the missing samples, and write results.json from the ledger.

        Samples on record are scored again if the evaluation's code changed, with a warning if a
        score did.

        Returns:
            By the name of the evaluation: the number that results.json has; NaN, with a warning, if
            no sample could be scored.
        """
        return self._told(self._on_first("run", lambda: self._run(on_progress)))

    def _told(self, found: "RecordedScores") -> dict[str, float]:
        """Return recorded scores, and warn of what limits them."""
        for evaluation, n_samples, lost in found.lost:
            warn_of_lost(evaluation, n_samples, lost)
        if found.n_rescored:
            samples = counted(found.n_rescored, "recorded sample")
            warnings.warn(f"{samples} got another score: {CODE_CHANGED}", stacklevel=3)
        return found.scores

    def _run(self, on_progress: OnProgress) -> "RecordedScores":
        self.spec.folder.mkdir(parents=True, exist_ok=True)
        stream = StreamId(self.spec.name)
        path, network = self.spec.folder / _LEDGER, allows_network(os.environ)
        with (
            Ledger.open(path, allow_network=network) as ledger,
            ledger.alone(_warn_of_waiting),
            self._subject.in_evaluation_mode(),
        ):
            recorder, planned = EvaluationRecorder(ledger, stream), self._planned()
            done = evaluate_all(recorder, planned, on_progress=on_progress)
            results = results_of(
                self.spec.name,
                recorder.state.runs,
                project=self.spec.project,
                group=self.spec.group,
                as_of=ledger.head,
            )
        write_whole(self.spec.folder / _RESULTS, [results_file(results)])
        self._report(planned, recorder.state)
        return _recorded_scores(planned, recorder.state)._replace(n_rescored=done.n_rescored)

    def _report(self, planned: Iterable[PlannedEvaluation], known: Evaluations) -> None:
        """Report the metrics of plans, if the step of the weights is known."""
        for evaluation in planned if self._reporters else ():
            step = evaluation.inference.entrant.step
            metrics = metrics_of(known.run(known.plans[labels_of(evaluation.plan)]))
            values = {
                f"{evaluation.evaluation.id}/{metric.name}": metric.estimate.value
                for metric in metrics.metrics
                if metric.estimate.value is not None
            }
            for report in self._reporters:
                if step is not None:
                    report(step, values)

    def __call__(self) -> dict[str, float]:
        """Run, unless everything is done; return the recorded scores, as `run` does."""
        found = self._on_first(
            "run, unless done", lambda: self._recorded() or self._run(no_progress)
        )
        return self._told(found)

    def _on_first(self, what: str, work: Callable[[], Result]) -> Result:
        return _first(self.spec, what, work, self._subject.where)

    def _planned(self, chosen: Mapping[str, Any] = NOTHING) -> list[PlannedEvaluation]:
        inference = self._inference(self._subject.named())
        return [
            plan_evaluation(evaluation, inference, options_of({**options.model_dump(), **chosen}))
            for evaluation, options in self.evaluations
        ]

    def _inference(self, entrant: Entrant) -> Inference:
        settings, subject = self._generation, self._subject
        local = cache(lambda: LocalModels(settings.batch_tokens, subject.device, subject.load))
        return Inference(entrant, local, local)


def _warn_of_waiting(holder: Holder | None) -> None:
    who = holder or "another process"
    warnings.warn(f"waiting for {who}, which runs the same job", stacklevel=2)


def _first(
    spec: ExecutionSpec,
    what: str,
    work: Callable[[], Result],
    where: Callable[[], str] = str,
) -> Result:
    """Return what the first process of a distributed training gets of some work for a job."""
    return on_first_rank(Call(str(spec.folder), what, where()), work)


class RecordedScores(NamedTuple):
    """What is on record of a model."""

    scores: dict[str, float]  # by evaluation; NaN: no sample could be scored
    lost: list[tuple[str, int, list[tuple[UnscorableReason, str]]]]  # see `warn_of_lost`
    n_rescored: int = 0


def _recorded_scores(planned: Iterable[PlannedEvaluation], known: Evaluations) -> RecordedScores:
    """Return the headline of each plan, as results.json has it, and what could not be scored."""
    runs = [known.run(known.plans[labels_of(evaluation.plan)]) for evaluation in planned]
    values = {run.plan.evaluation: headline(metrics_of(run)) for run in runs}
    return RecordedScores(
        {name: float("nan") if value is None else value for name, value in values.items()},
        [
            (
                run.plan.evaluation,
                len(run.fates),
                [
                    (sample_unscorable.reason, sample_unscorable.detail)
                    for sample_unscorable in run.unscorable
                ],
            )
            for run in runs
        ],
    )


def _score(planned: PlannedEvaluation, known: Evaluations, reduce: Reduce) -> float | Scores:
    """Return the score of a plan's samples; those on record are not observed again."""
    evaluation, key = planned.evaluation, planned.plan.run_key
    fates = {
        each: known.fates.get(SampleKey(key, each.item, each.number)) for each in planned.samples
    }
    seen, lost = {}, []
    for sample, fate in fates.items():
        if isinstance(fate, SampleObserved):
            with blame_evaluation(evaluation.id, f"scoring {fate.label}"):
                seen[sample] = evaluation.rescore(fate.observation)
        elif fate is not None:
            lost.append((fate.reason, fate.detail))
    missing = [sample for sample, fate in fates.items() if fate is None]
    batches = evaluation.observe_all(planned.inference, missing, planned.options)
    for each in (each for batch in batches for each in batch):
        if isinstance(each, ObservedSample):
            seen[each.sample] = each.observation
        else:
            lost.append((each.reason, each.detail))
    warn_of_lost(evaluation.id, len(fates), lost)
    return evaluation.score_of(seen, planned.samples, reduce)
