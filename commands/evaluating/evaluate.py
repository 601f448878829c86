"""Use case: evaluate an entrant on what is owed, and keep each batch as it is observed."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from commands.decisions.recorder import EvaluationRecorder
from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation, HeldBack, Observed
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference, Sample, Seen
from commands.evaluating.user_code import blaming, truth
from commands.ports import OnProgress
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
from ledger.identity import Digest, canonical_json
from projections.evaluations.state import Evaluations, SampleKey


class PlannedEvaluation(NamedTuple):
    """A plan that is not recorded yet, and the samples that it names."""

    evaluation: Evaluation
    inference: Inference
    terms: EvaluationOptions
    plan: EvaluationPlanned
    samples: tuple[Sample, ...]


class Evaluated(NamedTuple):
    """What a run added."""

    n_owed: int  # before
    n_observed: int
    n_unscorable: int


def plan_evaluation(
    evaluation: Evaluation, inference: Inference, terms: EvaluationOptions
) -> PlannedEvaluation:
    """Say what is to be observed; nothing is recorded, and no weights are read.

    Raises:
        ConfigurationError: The entrant cannot be evaluated so, or there is nothing to observe.
        EvaluationFault: The evaluation's own code fails.
    """
    samples = evaluation.samples(terms)
    if not samples:
        raise ConfigurationError([f"evaluation {evaluation.name!r} has no items"])
    items = tuple(dict.fromkeys(sample.item for sample in samples))
    with blaming(evaluation.name, "saying how entrants are asked"):
        configured = evaluation.configured(inference, terms)
        said = {"kind": evaluation.kind, **evaluation.settings(inference, terms)}
        settings = canonical_json(said).decode()
        says = f"{type(evaluation).__name__}.higher_is_better is"
        higher_is_better = truth(evaluation.higher_is_better, says)
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
        n_samples=evaluation.n_samples(terms),
        n_available=len(evaluation),
    )
    return PlannedEvaluation(evaluation, inference, terms, plan, samples)


class OwedSamples(NamedTuple):
    """What one entrant owes on one evaluation."""

    entrant: str
    evaluation: str
    kind: EvaluationKind
    n_planned: int
    n_owed: int


def owed_samples(
    known: Evaluations, planned: Iterable[PlannedEvaluation]
) -> tuple[OwedSamples, ...]:
    """Count the samples that plans name and the ledger lacks; what two share the first owes."""
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


def n_scored_otherwise(known: Evaluations, planned: PlannedEvaluation) -> int:
    """Count the samples on record that an evaluation would score otherwise now.

    None where nothing is owed: one metric mixes two scorings only where more samples are to come.

    Raises:
        EvaluationFault: The evaluation's own code fails.
    """
    run, evaluation = known.run(planned.plan), planned.evaluation
    observed = run.observed if run.missing else ()
    return sum(_is_scored_otherwise(evaluation, each) for each in observed)


def _is_scored_otherwise(evaluation: Evaluation, recorded: SampleObserved) -> bool:
    with blaming(evaluation.name, f"scoring {recorded.label}"):
        return evaluation.rescored(recorded.observation) != recorded.observation


def evaluate_all(
    recorder: EvaluationRecorder,
    planned: Iterable[PlannedEvaluation],
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> Evaluated:
    """Observe every sample of several plans, one after another; limit is of all together.

    Raises:
        LeftUnanswered: To some there came no answer, after all plans had their turn.
    """
    total, left, held = Evaluated(0, 0, 0), limit, HeldBack()
    for each in planned:
        n_owed = len(recorder.state.run(each.plan).missing)
        with held.holding():
            added = evaluate_owed(recorder, each, on_progress=on_progress, limit=left)
            total = Evaluated(*map(sum, zip(total, added, strict=True)))
        left = None if left is None else max(0, left - n_owed)  # what was asked in vain counts
    held.tell()
    return total


def evaluate_owed(
    recorder: EvaluationRecorder,
    planned: PlannedEvaluation,
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> Evaluated:
    """Observe every sample of a plan that the ledger lacks; a kill loses the batch in flight only.

    Args:
        recorder: Where it is kept.
        planned: What is to be observed.
        on_progress: Told of samples done.
        limit: Observe so many at most.

    Raises:
        LeftUnanswered: To some there came no answer, and they are still owed.
    """
    evaluation, inference, terms, plan, samples = planned
    plan = recorder.plan(plan)
    missing = recorder.state.run(plan).missing
    owed = [sample for sample in samples if _key(plan.run_key, sample) in missing][:limit]
    what = f"{plan.entrant.label} on {plan.evaluation}"
    n_done = n_seen = 0
    for batch in evaluation.observe_all(inference, owed, terms):
        recorder.record([_event(planned, each) for each in batch])
        n_done += len(batch)
        n_seen += sum(isinstance(each, Seen) for each in batch)
        on_progress(what, n_done, len(owed))
    recorder.complete(plan)
    return Evaluated(len(missing), n_seen, n_done - n_seen)


def _key(run: Digest, sample: Sample) -> SampleKey:
    return SampleKey(run, sample.item, sample.number)


def _event(planned: PlannedEvaluation, each: Observed) -> SampleObserved | SampleUnscorable:
    of_sample: dict[str, Any] = {
        "run_key": planned.plan.run_key,
        "item": each.sample.item,
        "sample": each.sample.number,
        "label": each.sample.label,
    }
    if isinstance(each, Seen):
        return SampleObserved(**of_sample, cluster=each.cluster, observation=each.observation)
    return SampleUnscorable(**of_sample, reason=each.reason, detail=each.detail)


class _Owed(NamedTuple):
    evaluation: Evaluation
    entrant: Entrant  # with the decoding that is asked for
    sample: Sample


def owed_requests(
    known: Evaluations, planned: Iterable[PlannedEvaluation], *, limit: int | None = None
) -> tuple[Request, ...]:
    """Return the prompts that plans put to endpoints and the ledger lacks.

    Entrants that are the same but for what an evaluation overrules share a run: it is asked once.

    Args:
        known: What is on the ledger.
        planned: What is to be observed, in order.
        limit: Of so many samples at most, those that put nothing to an endpoint included.
    """
    owed = {key: each for plan in planned for key, each in _owed(known, plan)}
    asked = (_request(each) for each in islice(owed.values(), limit))
    return tuple(request for request in asked if request is not None)


def _owed(known: Evaluations, planned: PlannedEvaluation) -> Iterator[tuple[SampleKey, _Owed]]:
    evaluation, inference, terms, plan, samples = planned
    entrant, owed = evaluation.configured(inference, terms), known.run(plan).missing
    for sample in samples:
        key = SampleKey(plan.run_key, sample.item, sample.number)
        if key in owed:
            yield key, _Owed(evaluation, entrant, sample)


def _request(owed: _Owed) -> Request | None:
    """Return what a sample puts to an endpoint; only rollouts put anything."""
    evaluation, entrant, sample = owed
    if entrant.loader != "endpoint" or not isinstance(evaluation, RolloutEvaluation):
        return None
    with blaming(evaluation.name, f"getting {sample.label}"):
        prompt_text, _ = evaluation.get(sample.index)
    return Request(entrant, prompt_text)
