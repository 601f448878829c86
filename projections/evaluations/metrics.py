"""Metrics of evaluations with 95 % intervals, and the comparison of two runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesObserved,
    EvaluationKind,
    SampleObserved,
    TaskMetric,
    TaskResults,
)
from ledger.identity import Json
from projections.evaluations.scores import MetricRatio, mean_terms, metric_ratios, scale_of
from projections.evaluations.state import EvaluationRun, SampleKey, mismatch_of
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
        if shared := [each for each in one if each in other]:
            pair = [one[each] for each in shared], [other[each] for each in shared]
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
    n_truncated = sum(each.is_truncated for each in put)
    n_cut = sum(answer.finish_reason == "length" for answer in answers)
    kind = run.plan.kind
    return SampleCounts(
        n_planned=len(run.fates),
        n_observed=len(samples),
        n_unscorable=len(run.unscorable),
        n_truncated=n_truncated if kind in {"comparison", "rollout"} else None,
        n_length_limited=n_cut if kind == "rollout" else None,
    )
