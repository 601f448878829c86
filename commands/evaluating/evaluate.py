"""Run evaluations: plan the samples, count those that are missing, observe and record them.

Everything is recorded batch by batch, so a run that is stopped loses only the batch in flight. For
consent, caps and the settings file see plan.py.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final, NamedTuple

from msgspec import UNSET

from commands.decisions.recorder import EvaluationRecorder
from commands.entrants.generate import why_stop
from commands.errors import ConfigurationError, DeferredFailures, NothingReadable
from commands.evaluating.evaluation import Evaluation, Observed, SampleResult, rescored
from commands.evaluating.rollout import AnswersEvaluation
from commands.evaluating.samples import Inference, ObservedSample, Sample
from commands.evaluating.user_code import blame_evaluation, require_boolean
from commands.ports import Billing, OnProgress
from commands.settings.sections import EvaluationOptions
from commands.spending.endpoints import Request
from ledger.events.evaluations import (
    AnswerObserved,
    EvaluationKind,
    EvaluationPlanned,
    ItemRegistered,
    SampleObserved,
    SampleScore,
    SampleUnscorable,
    ScoredBy,
    run_key,
)
from ledger.events.registration import Entrant, EntrantRegistered, Reference
from ledger.identity import Digest, EntrantId, canonical_json
from projections.evaluations.state import (
    EvaluationRun,
    Evaluations,
    SampleKey,
    is_same_plan,
    labels_of,
)
from projections.results.columns import Column, Shown

CODE_CHANGED: Final = "the evaluation's code changed since"


class PlannedEvaluation(NamedTuple):
    """A plan that is not recorded yet, and the samples that it names."""

    evaluation: Evaluation
    inference: Inference
    options: EvaluationOptions
    plan: EvaluationPlanned
    samples: tuple[Sample, ...]

    def billed_by(self, billing: Billing) -> "PlannedEvaluation":
        """Return the same, with requests to an endpoint recorded and kept within the cap."""
        return self._replace(inference=self.inference.billed_by(billing))

    def registered(self, known: Container[Digest]) -> Iterator[EntrantRegistered | ItemRegistered]:
        """Yield the registrations of its entrant and items, but for those that are known.

        Raises:
            EvaluationFault: The evaluation's own code fails.
        """
        if self.plan.entrant.digest not in known:
            entrant = self.inference.entrant
            yield EntrantRegistered(digest=entrant.content_digest, entrant=entrant)
        for sample in self.samples:
            if sample.number == 0 and sample.item not in known:
                yield self.evaluation.registered(sample)

    def missing(self, known: Evaluations) -> dict[SampleKey, Sample]:
        """Return the samples that the ledger lacks, by their keys in it."""
        run_key, lacking = self.plan.run_key, known.run(self.plan).missing
        keys = (SampleKey(run_key, sample.item, sample.number) for sample in self.samples)
        named = zip(keys, self.samples, strict=True)
        return {key: sample for key, sample in named if key in lacking}


class EvaluationCounts(NamedTuple):
    """Samples that a run observed."""

    n_missing: int  # before the run
    n_observed: int
    n_unscorable: int
    n_rescored: int = 0  # recorded samples that changed code gives another score


def plan_evaluation(
    evaluation: Evaluation,
    inference: Inference,
    options: EvaluationOptions,
    scored_by: ScoredBy | None = None,
) -> PlannedEvaluation:
    """Plan one entrant's evaluation; nothing is recorded, and no weights are loaded.

    Raises:
        ConfigurationError: The entrant does not support the evaluation, it has no items, or a
            judge is to score what is no answer.
        EvaluationFault: The evaluation's own code fails.
    """
    options = evaluation.decided(options)
    evaluation = evaluation.asked_as(options)
    samples = evaluation.samples(options)
    if scored_by and evaluation.kind != "rollout":
        fault = f"a judge scores answers, and kind {evaluation.kind!r} has none; leave out rubric"
        raise ConfigurationError([f"evaluation {evaluation.id!r}: {fault}"])
    items = tuple(dict.fromkeys(sample.item for sample in samples))
    with blame_evaluation(evaluation.id, "reading its settings"):
        configured = evaluation.configured(inference, options)
        asking = evaluation.asking(inference, configured)
        fixed = {"kind": evaluation.kind, **evaluation.settings(inference, options)}
        settings = canonical_json(fixed).decode()
        says = f"{type(evaluation).__name__}.higher_is_better is"
        higher_is_better = require_boolean(evaluation.higher_is_better, says)
    entrant = inference.entrant
    plan = EvaluationPlanned(
        number=1,
        run_key=run_key(configured.digest, settings),
        entrant=Reference(label=entrant.entrant_id, digest=entrant.content_digest),
        evaluation=evaluation.id,
        kind=evaluation.kind,
        higher_is_better=higher_is_better,
        settings=settings,
        scorer=evaluation.scorer,
        items=items,
        n_samples=evaluation.n_samples(options),
        n_available=evaluation.n_available,
        scored_by=scored_by or UNSET,
        asking=asking,
        task=evaluation.task or UNSET,
    )
    return PlannedEvaluation(evaluation, inference, options, plan, samples)


def is_done(known: Evaluations, planned: PlannedEvaluation) -> bool:
    """Return whether a plan is on record with all its samples, scored by its code."""
    last = known.plans.get(labels_of(planned.plan))
    return last is not None and is_same_plan(planned.plan, last) and known.is_completed(last)


class MissingSamples(NamedTuple):
    """How many samples of one entrant on one evaluation are missing."""

    entrant: Shown[str]
    evaluation: Shown[str]
    kind: Shown[EvaluationKind]
    n_planned: Annotated[int, Column("Samples")]
    n_owed: Annotated[int, Column("Missing")]


def missing_samples(
    known: Evaluations, planned: Iterable[PlannedEvaluation]
) -> tuple[MissingSamples, ...]:
    """Count planned samples that the ledger lacks; one shared by two plans counts for the first."""
    counted: set[SampleKey] = set()
    rows = []
    for plan in (evaluation.plan for evaluation in planned):
        missing = known.run(plan).missing - counted
        counted |= missing
        n_planned = len(plan.items) * plan.n_samples
        rows.append(
            MissingSamples(plan.entrant.label, plan.evaluation, plan.kind, n_planned, len(missing))
        )
    return tuple(rows)


def n_rescored_differently(known: Evaluations, planned: PlannedEvaluation) -> int:
    """Count recorded samples that the evaluation's code would score differently today.

    Zero if no sample is missing: otherwise a metric could mix two ways of scoring.

    Raises:
        EvaluationFault: The evaluation's own code fails.
    """
    run, evaluation = known.run(planned.plan), planned.evaluation
    observed = run.observed if run.missing else ()
    again = rescored(evaluation, observed)
    return sum(new != old for new, old in zip(again, observed, strict=True))


def evaluate_all(
    recorder: EvaluationRecorder,
    planned: Iterable[PlannedEvaluation],
    *,
    on_progress: OnProgress,
    limit: int | None = None,
) -> EvaluationCounts:
    """Observe the missing samples of several plans in turn, at most `limit` in all.

    Args:
        recorder: Of the tournament.
        planned: The plans.
        on_progress: Is told of each batch.
        limit: The most samples.

    Raises:
        LeftUnanswered: Some requests got no answer; raised after all plans had their turn.
        NothingReadable: An endpoint entrant gave one empty answer after the other, and more of it
            are missing; raised likewise.
    """
    n_empty: Counter[EntrantId] = Counter()  # in a row
    stopped: dict[EntrantId, str] = {}

    def look_at(plan: PlannedEvaluation, results: Sequence[SampleResult]) -> None:
        entrant = plan.inference.entrant
        for answer in _answers(results) if entrant.loader == "endpoint" else ():
            if why := why_stop(entrant, answer.text, answer.finish_reason, n_empty):
                stopped[entrant.entrant_id] = why
                if plan.inference.stop:
                    plan.inference.stop()

    total, left, held = EvaluationCounts(0, 0, 0, 0), limit, DeferredFailures()
    every = tuple(planned)
    for evaluation in every:
        n_missing = len(recorder.state.run(evaluation.plan).missing)
        with held.collecting():
            added = _evaluate(
                recorder,
                evaluation,
                every,
                on_progress=on_progress,
                limit=left,
                look_at=partial(look_at, evaluation),
            )
            total = EvaluationCounts(*map(sum, zip(total, added, strict=True)))
        left = None if left is None else max(0, left - n_missing)  # unanswered ones count
    lacking = {
        evaluation.plan.entrant.label
        for evaluation in every
        if recorder.state.run(evaluation.plan).missing
    }
    if faults := [why for name, why in stopped.items() if name in lacking]:
        raise NothingReadable("; ".join(faults))
    held.raise_collected()
    return total


def _answers(results: Iterable[SampleResult]) -> Iterator[AnswerObserved]:
    for result in results:
        if isinstance(result, ObservedSample) and isinstance(result.observation, AnswerObserved):
            yield result.observation


def _evaluate(
    recorder: EvaluationRecorder,
    planned: PlannedEvaluation,
    among: Sequence[PlannedEvaluation],
    *,
    on_progress: OnProgress,
    limit: int | None,
    look_at: Callable[[Sequence[SampleResult]], None],
) -> EvaluationCounts:
    """Observe every sample of a plan that the ledger lacks, and record each batch.

    A group of tasks is completed once those are that are planned beside it, `among` all. `look_at`
    gets each batch once it is recorded.
    """
    last = recorder.state.plans.get(labels_of(planned.plan))
    plan = recorder.plan(planned.plan, planned.registered)
    run = recorder.state.run(plan)
    missing = [*planned.missing(recorder.state).values()][:limit]
    what = f"{plan.entrant.label} on {plan.evaluation}"
    n_done = n_seen = n_rescored = 0
    for batch in planned.evaluation.observe_all(planned.inference, missing, planned.options):
        recorder.record([_event(planned, each) for each in batch])
        n_done += len(batch)
        n_seen += sum(isinstance(each, ObservedSample) for each in batch)
        on_progress(what, n_done, len(missing))
        look_at(batch)
    if recorder.is_due(plan):
        samples = recorder.state.run(last).observed if last else ()
        scored = {sample.natural_key for sample in run.observed if sample.scored}  # one by one
        _complete(recorder, planned._replace(plan=plan), run, among)
        n_rescored = _n_others(
            recorder.state.run(plan).observed,
            [sample for sample in samples if sample.natural_key in scored],
        )
    return EvaluationCounts(len(run.missing), n_seen, n_done - n_seen, n_rescored)


def _complete(
    recorder: EvaluationRecorder,
    planned: PlannedEvaluation,
    before: EvaluationRun,
    among: Sequence[PlannedEvaluation],
) -> None:
    """Record that a plan is complete, unless it waits for the tasks of its group."""
    evaluation, evaluations = planned.evaluation, recorder.state
    if not evaluation.member_evaluations:
        changed = _changed_scores(evaluation, evaluations.run(planned.plan), before)
        recorder.complete(planned.plan, changed)
        return
    of_entrant = (
        planned_evaluation
        for planned_evaluation in among
        if planned_evaluation.plan.entrant == planned.plan.entrant
    )
    named = {
        planned_evaluation.evaluation.id: planned_evaluation
        for planned_evaluation in (*of_entrant, planned)
    }
    wanted = [named.get(member.id) for member in evaluation.member_evaluations]
    members = [member for member in wanted if member is not None]
    if len(members) < len(wanted) or any(evaluations.run(each.plan).missing for each in members):
        return
    observed = {member.evaluation: _observed(member, evaluations) for member in members}
    with blame_evaluation(evaluation.id, "scoring its samples"):
        completion = evaluation.completion(observed)
    recorder.complete(planned.plan, *completion)


def _observed(planned: PlannedEvaluation, known: Evaluations) -> Observed:
    """Return the observations of a plan's samples, but for those that were redacted."""
    named = {(sample.item, sample.number): sample for sample in planned.samples}
    return {
        named[fate.item, fate.sample]: fate.observation
        for fate in known.run(planned.plan).observed
        if not (isinstance(fate.observation, AnswerObserved) and fate.observation.is_redacted)
    }


def _changed_scores(
    evaluation: Evaluation, run: EvaluationRun, before: EvaluationRun
) -> tuple[SampleScore, ...]:
    """Return the scores by today's code that are not as recorded.

    Code that scored every sample of the run just now, one by one, is not called again.
    """
    is_scored = all(sample.scored for sample in run.observed)
    if evaluation.scorer is None or (is_scored and not before.observed):
        return ()
    again = zip(rescored(evaluation, run.observed), run.observed, strict=True)
    return tuple(new.scored for new, old in again if new.scored and new.scored != old.scored)


def _n_others(now: Iterable[SampleObserved], before: Iterable[SampleObserved]) -> int:
    """Count the samples that have another score than a reader saw until now."""
    known = {sample.natural_key: sample.scored.score for sample in before if sample.scored}
    scored = ((sample.natural_key, sample.scored.score) for sample in now if sample.scored)
    return sum(key in known and known[key] != score for key, score in scored)


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


def missing_requests(
    known: Evaluations, planned: Iterable[PlannedEvaluation], *, limit: int | None = None
) -> tuple[Request, ...]:
    """Return the requests to endpoints that the missing samples need.

    Entrants that differ only in settings that an evaluation overrides share a run: one request.

    Args:
        known: What the ledger holds.
        planned: The plans, in order.
        limit: Count at most this many samples, including those that need no endpoint.
    """
    missing: dict[SampleKey, tuple[Evaluation, Entrant, Sample]] = {}
    for evaluation in planned:
        entrant = evaluation.evaluation.configured(evaluation.inference, evaluation.options)
        samples = evaluation.missing(known).items()
        missing |= {key: (evaluation.evaluation, entrant, sample) for key, sample in samples}
    asked = (_request(*each) for each in islice(missing.values(), limit))
    return tuple(request for request in asked if request is not None)


def _request(evaluation: Evaluation, entrant: Entrant, sample: Sample) -> Request | None:
    """Return a sample's request to an endpoint; only rollouts make one."""
    if entrant.loader != "endpoint" or not isinstance(evaluation, AnswersEvaluation):
        return None
    with blame_evaluation(evaluation.id, f"getting {sample.label}"):
        prompt = evaluation.item(sample.index).prompt
    return Request(entrant, prompt)
