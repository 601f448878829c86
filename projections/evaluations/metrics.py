"""Metrics of evaluations with 95 % intervals, compared between two runs, or over a training."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesObserved,
    EvaluationKind,
    EvaluationPlanned,
    SampleObserved,
    TaskMetric,
    TaskResults,
)
from ledger.events.registration import Entrant
from ledger.identity import Json
from projections.evaluations.scores import MetricRatio, mean_terms, metric_ratios, scale_of
from projections.evaluations.state import (
    EvaluationRun,
    Evaluations,
    Labels,
    SampleKey,
    labels_of,
    mismatch_of,
    other_settings,
)
from projections.intervals import Estimate, estimate_difference, estimate_ratio

HEADLINES: Final[Mapping[EvaluationKind, str]] = {
    "comparison": "acc",
    "perplexity": "perplexity",
    "rollout": "score",
    "encoding": "score",
}
"""The metric that an evaluation is worth where there is room for one number."""


def headline_of(run: EvaluationRun) -> str:
    """Return the metric that stands for an evaluation: a judge's score, if one scores answers.

    Of a task of lm-evaluation-harness it is its first.
    """
    if run.plan.scored_by:
        return "judged"
    if run.results and run.results.metrics:
        return run.results.metrics[0].name
    return HEADLINES[run.plan.kind]


class Metric(NamedTuple):
    """A metric of one run, or its difference between two, with a 95 % interval."""

    name: str
    unit: str
    higher_is_better: bool
    estimate: Estimate

    def id_on(self, evaluation: str) -> str:
        """Return the full name of the metric, including its evaluation."""
        return f"{evaluation}_{self.name}"

    @property
    def fields(self) -> dict[str, Json]:
        """The metric as JSON, without its name."""
        about = {"unit": self.unit, "higher_is_better": self.higher_is_better}
        return {**self.estimate._asdict(), **about}


class SampleCounts(NamedTuple):
    """How many of a plan's samples were observed, unscorable or cut."""

    n_planned: int
    n_observed: int
    n_unscorable: int
    n_truncated: int | None  # whose context or prompt lacks something; None: nothing is left out
    n_length_limited: int | None  # whose answer was cut; None: nothing was answered


@dataclass(frozen=True)
class RunMetrics:
    """A run, its sample counts and its metrics, the primary one first."""

    run: EvaluationRun
    counts: SampleCounts
    metrics: tuple[Metric, ...]


@dataclass(frozen=True)
class RunComparison:
    """Two runs of one evaluation: the second minus the first for each metric, paired by sample."""

    first: EvaluationRun
    second: EvaluationRun
    n_pairs: int
    n_left_out: int  # samples that were planned for either and observed on one or none
    metrics: tuple[Metric, ...]


def metrics_of(run: EvaluationRun) -> RunMetrics:
    """Return the metrics of the samples observed so far; unscorable ones are counted apart."""
    samples = [*_observed(run).values()]
    clusters = [sample.cluster for sample in samples]
    ratios = metric_ratios(run.plan, samples, _judged(run, samples))
    if run.plan.task:
        ratios = tuple(ratio for ratio in ratios if ratio.name == "judged")
    metrics = (
        _metric(ratio, estimate_ratio(ratio.terms, clusters, ratio.scale)) for ratio in ratios
    )
    by_task = _of_task(run) if run.plan.task else ()
    return RunMetrics(run, _counts(run, samples), (*metrics, *by_task))


def _of_task(run: EvaluationRun) -> Iterator[Metric]:
    """Yield the metrics of lm-evaluation-harness: its own values, with our intervals of means."""
    if run.results is None or not run.results.metrics:
        nothing = Estimate(None, 0, None, low=None, high=None)
        yield Metric(HEADLINES[run.plan.kind], "score", run.plan.higher_is_better, nothing)
        return
    for metric in run.results.metrics:
        estimate = _estimate_of(metric, run.results)
        yield Metric(metric.name, "score", metric.higher_is_better, estimate)


def _estimate_of(metric: TaskMetric, results: TaskResults) -> Estimate:
    """Return its value and standard error, with an interval if it is a mean over documents."""
    values = [*results.of_documents(metric).values()]
    if not values:
        return Estimate(
            metric.value, results.n_documents, metric.standard_error, low=None, high=None
        )
    around = estimate_ratio(mean_terms(values), range(len(values)), scale_of(values))
    return around._replace(value=metric.value, standard_error=metric.standard_error)


def compare_runs(first: EvaluationRun, second: EvaluationRun) -> RunComparison:
    """Return the second run's metrics minus the first's, over the samples that both have.

    The differences are paired, so the difficulty of the samples cancels out. Those of a task of
    lm-evaluation-harness are paired by document, and are of its metrics that are means.
    """
    if first.results and second.results:
        return _compare_results(first, first.results, second, second.results)
    of_first, of_second = _observed(first), _observed(second)
    shared = [key for key in of_first if key in of_second]
    planned = {(key.item, key.sample) for run in (first, second) for key, _ in run.fates}
    clusters = [of_first[key].cluster for key in shared]
    others, ones = [of_second[key] for key in shared], [of_first[key] for key in shared]
    of_others = metric_ratios(second.plan, others, _judged(second, others))
    terms = {ratio.name: ratio.terms for ratio in of_others}
    metrics = (
        _metric(ratio, estimate_difference(ratio.terms, terms[ratio.name], clusters, ratio.scale))
        for ratio in metric_ratios(first.plan, ones, _judged(first, ones))
        if ratio.name in terms
    )
    return RunComparison(first, second, len(shared), len(planned) - len(shared), (*metrics,))


def _compare_results(
    first: EvaluationRun, ours: TaskResults, second: EvaluationRun, theirs: TaskResults
) -> RunComparison:
    of_second = {
        task_metric.name: theirs.of_documents(task_metric) for task_metric in theirs.metrics
    }
    metrics = []
    for metric in ours.metrics:
        one, other = ours.of_documents(metric), of_second.get(metric.name, {})
        if shared := [document for document in one if document in other]:
            pair = [one[document] for document in shared], [other[document] for document in shared]
            a, b = map(mean_terms, pair)
            estimate = estimate_difference(a, b, [*map(str, shared)], scale_of(pair[0] + pair[1]))
            metrics.append(Metric(metric.name, "score", metric.higher_is_better, estimate))
    n_pairs = len({*ours.documents} & {*theirs.documents})
    n_left_out = len({*ours.documents} ^ {*theirs.documents})
    return RunComparison(first, second, n_pairs, n_left_out, (*metrics,))


def _judged(run: EvaluationRun, samples: Sequence[SampleObserved]) -> list[float | None]:
    """Return the judge's score of each sample, if there is one."""
    given = (run.judged.get(SampleKey(run.plan.run_key, s.item, s.sample)) for s in samples)
    return [None if score is None else score.score for score in given]


def _metric(ratio: MetricRatio, estimate: Estimate) -> Metric:
    return Metric(ratio.name, ratio.unit, ratio.higher_is_better, estimate)


def _observed(run: EvaluationRun) -> dict[tuple[str, int], SampleObserved]:
    """Return the observed samples that fit the plan's kind, by item and number, in order."""
    return {
        (sample.item, sample.sample): sample
        for sample in run.observed
        if mismatch_of(sample.observation, run.plan.kind) is None
    }


def _counts(run: EvaluationRun, samples: Sequence[SampleObserved]) -> SampleCounts:
    observations = [sample.observation for sample in samples]
    answers = [
        observation for observation in observations if isinstance(observation, AnswerObserved)
    ]
    put = [
        observation
        for observation in observations
        if isinstance(observation, AnswerObserved | ChoicesObserved)
    ]
    n_truncated = sum(observation.is_truncated for observation in put)
    n_cut = sum(answer.finish_reason == "length" for answer in answers)
    kind = run.plan.kind
    return SampleCounts(
        n_planned=len(run.fates),
        n_observed=len(samples),
        n_unscorable=len(run.unscorable),
        n_truncated=n_truncated if kind in {"comparison", "rollout"} else None,
        n_length_limited=n_cut if kind == "rollout" else None,
    )


_NUMBERED: Final = re.compile(
    r"(?P<training>.*?)[-_/ ]?(?:(?:global_?)?step|checkpoint)[-_ ]?(?P<step>\d+)"
    r"(?P<asked> \[.*\])?",  # how `tourney evaluate` asked it, if not as by default
    re.DOTALL,
)


def numbered_label(label: str) -> tuple[str, int] | None:
    """Return the training and the step that a label such as `olmo_step_50` names, if any."""
    match = _NUMBERED.fullmatch(label)
    return match and (f"{match['training']}{match['asked'] or ''}", int(match["step"]))


class TrainingPoint(NamedTuple):
    """The metrics of an evaluation after so many steps of a training."""

    training: str  # what the labels of its checkpoints share
    step: int
    entrant: Entrant | None  # None: it is not on record
    measured: RunMetrics

    @property
    def labels(self) -> Labels:
        """Of the entrant and the evaluation."""
        return labels_of(self.measured.run.plan)


def training_points(evaluations: Evaluations) -> tuple[TrainingPoint, ...]:
    """Return every planned run whose step is known, by training, evaluation and step.

    The step is the one that was registered with the weights, or else the one that the entrant's
    label names. Of several plans of one step the newest holds.
    """
    newest: dict[tuple[str, str, int], TrainingPoint] = {}
    for _, plan in sorted(evaluations.every.items()):
        entrant = evaluations.entrants.get(plan.entrant.digest)
        where = _place(plan.entrant.label, entrant)
        if where is not None:
            point = TrainingPoint(*where, entrant, metrics_of(evaluations.run(plan)))
            newest[point.training, plan.evaluation, point.step] = point
    return tuple(newest[key] for key in sorted(newest))


def _place(label: str, entrant: Entrant | None) -> tuple[str, int] | None:
    """Return the training and the step of an entrant; None: its step is not known."""
    named = numbered_label(label)
    if entrant is None or entrant.step is None:
        return named
    return named[0] if named else label, entrant.step


def metrics_over_steps(
    points: Iterable[TrainingPoint],
) -> Sequence[tuple[TrainingPoint, Metric]]:
    """Return each metric of points, by training, evaluation, metric and step."""
    every = [(point, metric) for point in points for metric in point.measured.metrics]
    names = [*dict.fromkeys(metric.name for _, metric in every)]  # the primary ones come first
    return sorted(
        every,
        key=lambda each: (
            each[0].training,
            each[0].labels.evaluation,
            names.index(each[1].name),
            each[0].step,
        ),
    )


def breaks(points: Iterable[TrainingPoint]) -> Iterator[str]:
    """Yield where neighbouring points of a curve do not compare, and why, in words."""
    before: dict[tuple[str, str], EvaluationPlanned] = {}
    for point in points:
        plan = point.measured.run.plan
        earlier = before.get((point.training, plan.evaluation), plan)
        before[point.training, plan.evaluation] = plan
        if changed := _changed(earlier, plan):
            where = f"{point.training} on {plan.evaluation}"
            yield f"{where}: from step {point.step:,} on with other {' and '.join(changed)}"


def _changed(earlier: EvaluationPlanned, plan: EvaluationPlanned) -> list[str]:
    is_other = {
        "items": (earlier.items, earlier.n_samples) != (plan.items, plan.n_samples),
        "settings": bool(other_settings(earlier, plan)),
        "scoring code": earlier.scorer != plan.scorer,
    }
    return [what for what, is_changed in is_other.items() if is_changed]
