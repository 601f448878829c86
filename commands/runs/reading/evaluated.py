"""The typed rows of samples, and of metrics over the steps of a training."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ledger.events.evaluations import EvaluationPlanned
    from projections.evaluations.curve import TrainingPoint
    from projections.evaluations.metrics import Metric
    from projections.evaluations.samples import AskedSample


class SampleRow(NamedTuple):
    """What a sample was asked, and what came of it; None: there is none."""

    entrant: str
    evaluation: str
    label: str  # where the item comes from
    sample: int  # 0, 1 ... of the item
    system: str | None  # the system prompt before it; None: there is none, or it is not on record
    asked: str | None  # the prompt, the context of choices, or the text
    choices: tuple[str, ...] | None
    answered: str | None  # the answer, the likeliest choice, or the predicted text
    cleaned: str | None  # what of the answer was compared
    expected: str | None
    score: float | None  # of a document its bits per byte
    is_right: bool | None  # None: nothing tells right from wrong
    unscorable: str | None  # why nothing could be observed
    judged: float | None  # a judge's score
    reply: str | None  # what the judge said
    item: str  # its digest
    run_key: str

    @classmethod
    def of(cls, plan: "EvaluationPlanned", each: "AskedSample") -> "SampleRow":
        """Return the row of a sample of a plan."""
        fate = each.fate
        return cls(
            plan.entrant.label,
            plan.evaluation,
            fate.label,
            fate.sample,
            plan.asking.system if plan.asking else None,
            *each[1:],
            item=fate.item,
            run_key=plan.run_key,
        )


class CurveRow(NamedTuple):
    """A metric of an evaluation after so many steps of a training, with its 95 % interval."""

    training: str
    step: int
    evaluation: str
    metric: str
    value: float | None
    n: int  # samples that count
    standard_error: float | None  # clustered by prompt
    low: float | None
    high: float | None
    unit: str
    higher_is_better: bool
    n_planned: int
    n_observed: int
    n_unscorable: int
    entrant: str
    weights: str | None  # where they are; None: it is not on record
    dtype: str | None
    run_key: str

    @classmethod
    def of(cls, point: "TrainingPoint", metric: "Metric") -> "CurveRow":
        """Return the row of a metric at a point."""
        plan, counts = point.measured.run.plan, point.measured.counts
        return cls(
            point.training,
            point.step,
            plan.evaluation,
            metric.name,
            *metric.estimate,
            metric.unit,
            metric.higher_is_better,
            counts.n_planned,
            counts.n_observed,
            counts.n_unscorable,
            plan.entrant.label,
            weights=point.entrant.weights if point.entrant else None,
            dtype=point.entrant.dtype if point.entrant else None,
            run_key=plan.run_key,
        )
