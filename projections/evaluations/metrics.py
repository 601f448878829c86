"""Metrics of evaluations with 95 % intervals, and the comparison of two runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesObserved,
    EvaluationKind,
    EvaluationPlanned,
    SampleObserved,
)
from ledger.identity import Json
from projections.evaluations.scores import MetricRatio, metric_ratios
from projections.evaluations.state import EvaluationRun, SampleKey, mismatch_of
from projections.intervals import Estimate, estimate_difference, estimate_ratio

HEADLINES: Final[Mapping[EvaluationKind, str]] = {
    "comparison": "acc",
    "perplexity": "perplexity",
    "rollout": "score",
    "encoding": "score",
}
"""The metric that an evaluation is worth where there is room for one number."""


def headline_of(plan: EvaluationPlanned) -> str:
    """Return the metric that stands for an evaluation: a judge's score, if one scores answers."""
    return "judged" if plan.scored_by else HEADLINES[plan.kind]


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
    metrics = (
        _metric(each, estimate_ratio(each.terms, clusters, each.scale))
        for each in metric_ratios(run.plan, samples, _judged(run, samples))
    )
    return RunMetrics(run, _counts(run, samples), (*metrics,))


def compare_runs(first: EvaluationRun, second: EvaluationRun) -> RunComparison:
    """Return the second run's metrics minus the first's, over the samples that both have.

    The differences are paired, so the difficulty of the samples cancels out.
    """
    of_first, of_second = _observed(first), _observed(second)
    shared = [key for key in of_first if key in of_second]
    planned = {(key.item, key.sample) for run in (first, second) for key, _ in run.fates}
    clusters = [of_first[key].cluster for key in shared]
    others, ones = [of_second[key] for key in shared], [of_first[key] for key in shared]
    of_others = metric_ratios(second.plan, others, _judged(second, others))
    terms = {each.name: each.terms for each in of_others}
    metrics = (
        _metric(each, estimate_difference(each.terms, terms[each.name], clusters, each.scale))
        for each in metric_ratios(first.plan, ones, _judged(first, ones))
        if each.name in terms
    )
    return RunComparison(first, second, len(shared), len(planned) - len(shared), (*metrics,))


def _judged(run: EvaluationRun, samples: Sequence[SampleObserved]) -> list[float | None]:
    """Return the judge's score of each sample, if there is one."""
    given = (run.judged.get(SampleKey(run.plan.run_key, s.item, s.sample)) for s in samples)
    return [None if each is None else each.score for each in given]


def _metric(ratio: MetricRatio, estimate: Estimate) -> Metric:
    return Metric(ratio.name, ratio.unit, ratio.higher_is_better, estimate)


def _observed(run: EvaluationRun) -> dict[tuple[str, int], SampleObserved]:
    """Return the observed samples that fit the plan's kind, by item and number, in order."""
    return {
        (each.item, each.sample): each
        for each in run.observed
        if mismatch_of(each.observation, run.plan.kind) is None
    }


def _counts(run: EvaluationRun, samples: Sequence[SampleObserved]) -> SampleCounts:
    observations = [sample.observation for sample in samples]
    answers = [each for each in observations if isinstance(each, AnswerObserved)]
    put = [each for each in observations if isinstance(each, AnswerObserved | ChoicesObserved)]
    n_truncated = sum(each.is_truncated for each in put)
    n_cut = sum(each.finish_reason == "length" for each in answers)
    kind = run.plan.kind
    return SampleCounts(
        n_planned=len(run.fates),
        n_observed=len(samples),
        n_unscorable=len(run.unscorable),
        n_truncated=n_truncated if kind in {"comparison", "rollout"} else None,
        n_length_limited=n_cut if kind == "rollout" else None,
    )
