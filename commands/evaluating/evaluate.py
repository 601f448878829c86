"""Run evaluations: plan the samples, count those that are owed, observe and record them.

Everything is recorded batch by batch, so a run that is stopped loses only the batch in flight. For
consent, caps and the settings file see plan.py.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from commands.decisions.recorder import EvaluationRecorder
from commands.errors import ConfigurationError
from commands.evaluating.evaluation import DeferredFailures, Evaluation, SampleResult, rescored
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference, ObservedSample, Sample
from commands.evaluating.user_code import blame_evaluation, require_boolean
from commands.ports import OnProgress, Till
from commands.settings.sections import EvaluationOptions
from commands.spending.endpoints import Request
from ledger.events.evaluations import (
    EvaluationKind,
    EvaluationPlanned,
    SampleObserved,
    SampleUnscorable,
    run_key,
)
from ledger.events.registration import Entrant, Reference
from ledger.identity import canonical_json
from projections.evaluations.state import Evaluations, SampleKey


class PlannedEvaluation(NamedTuple):
    """A plan that is not recorded yet, and the samples that it names."""

    evaluation: Evaluation
    inference: Inference
    options: EvaluationOptions
    plan: EvaluationPlanned
    samples: tuple[Sample, ...]

    def paying(self, till: Till) -> "PlannedEvaluation":
        """Return the same, with requests to an endpoint recorded by a till."""
        return self._replace(inference=self.inference.paying(till))

    def owed(self, known: Evaluations) -> dict[SampleKey, Sample]:
        """Return the samples that the ledger lacks, by their keys in it."""
        run_key, missing = self.plan.run_key, known.run(self.plan).missing
        keys = (SampleKey(run_key, sample.item, sample.number) for sample in self.samples)
        named = zip(keys, self.samples, strict=True)
        return {key: sample for key, sample in named if key in missing}


class EvaluationCounts(NamedTuple):
    """Samples that a run observed."""

    n_owed: int  # before the run
    n_observed: int
    n_unscorable: int


def plan_evaluation(
    evaluation: Evaluation, inference: Inference, options: EvaluationOptions
) -> PlannedEvaluation:
    """Plan one entrant's evaluation; nothing is recorded, and no weights are loaded.

    Raises:
        ConfigurationError: The entrant does not support the evaluation, or it has no items.
        EvaluationFault: The evaluation's own code fails.
    """
    samples = evaluation.samples(options)
    if not samples:
        raise ConfigurationError([f"evaluation {evaluation.name!r} has no items"])
    items = tuple(dict.fromkeys(sample.item for sample in samples))
    with blame_evaluation(evaluation.name, "reading its settings"):
        configured = evaluation.configured(inference, options)
        fixed = {"kind": evaluation.kind, **evaluation.settings(inference, options)}
        settings = canonical_json(fixed).decode()
        says = f"{type(evaluation).__name__}.higher_is_better is"
        higher_is_better = require_boolean(evaluation.higher_is_better, says)
    entrant = inference.entrant
    plan = EvaluationPlanned(
        number=1,
        run_key=run_key(configured.digest, settings),
        entrant=Reference(label=entrant.entrant_id, digest=entrant.content_digest),
        evaluation=evaluation.name,
        kind=evaluation.kind,
        higher_is_better=higher_is_better,
        settings=settings,
        items=items,
        n_samples=evaluation.n_samples(options),
        n_available=len(evaluation),
    )
    return PlannedEvaluation(evaluation, inference, options, plan, samples)


class OwedSamples(NamedTuple):
    """How many samples one entrant owes on one evaluation."""

    entrant: str
    evaluation: str
    kind: EvaluationKind
    n_planned: int
    n_owed: int


def owed_samples(
    known: Evaluations, planned: Iterable[PlannedEvaluation]
) -> tuple[OwedSamples, ...]:
    """Count planned samples that the ledger lacks; one shared by two plans counts for the first."""
    counted: set[SampleKey] = set()
    rows = []
    for plan in (each.plan for each in planned):
        owed = known.run(plan).missing - counted
        counted |= owed
        n_planned = len(plan.items) * plan.n_samples
        rows.append(
            OwedSamples(plan.entrant.label, plan.evaluation, plan.kind, n_planned, len(owed))
        )
    return tuple(rows)


def n_rescored_differently(known: Evaluations, planned: PlannedEvaluation) -> int:
    """Count recorded samples that the evaluation's code would score differently today.

    Zero if nothing is owed: a metric can mix two ways of scoring only if samples are still to come.

    Raises:
        EvaluationFault: The evaluation's own code fails.
    """
    run, evaluation = known.run(planned.plan), planned.evaluation
    observed = run.observed if run.missing else ()
    return sum(rescored(evaluation, each) != each for each in observed)


def evaluate_all(
    recorder: EvaluationRecorder,
    planned: Iterable[PlannedEvaluation],
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> EvaluationCounts:
    """Observe the owed samples of several plans in turn, at most `limit` in all.

    Raises:
        LeftUnanswered: Some requests got no answer; raised after all plans had their turn.
    """
    total, left, held = EvaluationCounts(0, 0, 0), limit, DeferredFailures()
    for each in planned:
        n_owed = len(recorder.state.run(each.plan).missing)
        with held.collecting():
            added = evaluate_owed(recorder, each, on_progress=on_progress, limit=left)
            total = EvaluationCounts(*map(sum, zip(total, added, strict=True)))
        left = None if left is None else max(0, left - n_owed)  # unanswered ones count
    held.raise_collected()
    return total


def evaluate_owed(
    recorder: EvaluationRecorder,
    planned: PlannedEvaluation,
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> EvaluationCounts:
    """Observe every sample of a plan that the ledger lacks, and record each batch.

    With a limit at most so many samples are observed.

    Raises:
        LeftUnanswered: Some requests got no answer; their samples are still owed.
    """
    plan = recorder.plan(planned.plan)
    n_missing = len(recorder.state.run(plan).missing)
    owed = [*planned.owed(recorder.state).values()][:limit]
    what = f"{plan.entrant.label} on {plan.evaluation}"
    n_done = n_seen = 0
    for batch in planned.evaluation.observe_all(planned.inference, owed, planned.options):
        recorder.record([_event(planned, each) for each in batch])
        n_done += len(batch)
        n_seen += sum(isinstance(each, ObservedSample) for each in batch)
        on_progress(what, n_done, len(owed))
    recorder.complete(plan)
    return EvaluationCounts(n_missing, n_seen, n_done - n_seen)


def _event(planned: PlannedEvaluation, each: SampleResult) -> SampleObserved | SampleUnscorable:
    of_sample: dict[str, Any] = {
        "run_key": planned.plan.run_key,
        "item": each.sample.item,
        "sample": each.sample.number,
        "label": each.sample.label,
    }
    if isinstance(each, ObservedSample):
        return SampleObserved(**of_sample, cluster=each.cluster, observation=each.observation)
    return SampleUnscorable(**of_sample, reason=each.reason, detail=each.detail)


def owed_requests(
    known: Evaluations, planned: Iterable[PlannedEvaluation], *, limit: int | None = None
) -> tuple[Request, ...]:
    """Return the requests to endpoints that the owed samples need.

    Entrants that differ only in settings that an evaluation overrides share a run: one request.

    Args:
        known: What the ledger holds.
        planned: The plans, in order.
        limit: Count at most this many samples, including those that need no endpoint.
    """
    owed: dict[SampleKey, tuple[Evaluation, Entrant, Sample]] = {}
    for each in planned:
        entrant = each.evaluation.configured(each.inference, each.options)
        samples = each.owed(known).items()
        owed |= {key: (each.evaluation, entrant, sample) for key, sample in samples}
    asked = (_request(*each) for each in islice(owed.values(), limit))
    return tuple(request for request in asked if request is not None)


def _request(evaluation: Evaluation, entrant: Entrant, sample: Sample) -> Request | None:
    """Return a sample's request to an endpoint; only rollouts make one."""
    if entrant.loader != "endpoint" or not isinstance(evaluation, RolloutEvaluation):
        return None
    with blame_evaluation(evaluation.name, f"getting {sample.label}"):
        prompt_text, _ = evaluation.get(sample.index)
    return Request(entrant, prompt_text)
