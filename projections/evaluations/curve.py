"""Evaluations over the steps of a training: of one model at several steps, or of checkpoints."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ledger.events.evaluations import EvaluationPlanned
from ledger.events.registration import Entrant
from projections.evaluations.metrics import Metric, RunMetrics, metrics_of
from projections.evaluations.state import Evaluations, Labels, labels_of, other_settings

_NUMBERED: Final = re.compile(
    r"(?P<training>.*?)[-_/ ]?(?:(?:global_?)?step|checkpoint)[-_ ]?(?P<step>\d+)"
    r"(?P<asked> \[.*\])?",  # how `tourney evaluate` asked it, if not as by default
    re.DOTALL,
)


class NumberedLabel(NamedTuple):
    """What a label such as `olmo_step_50` says: a training, and a step of it."""

    training: str
    step: int


def numbered_label(label: str) -> NumberedLabel | None:
    """Return the training and the step that a label names; None: it names no step."""
    found = _NUMBERED.fullmatch(label)
    return (
        None
        if found is None
        else NumberedLabel(f"{found['training']}{found['asked'] or ''}", int(found["step"]))
    )


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


def training_points(known: Evaluations) -> tuple[TrainingPoint, ...]:
    """Return every planned run whose step is known, by training, evaluation and step.

    The step is the one that was registered with the weights, or else the one that the entrant's
    label names. Of several plans of one step the newest holds.
    """
    newest: dict[tuple[str, str, int], TrainingPoint] = {}
    for name in sorted(known.every):
        plan = known.every[name]
        entrant = known.entrants.get(plan.entrant.digest)
        where = _place(name.entrant, entrant)
        if where is not None:
            point = TrainingPoint(*where, entrant, metrics_of(known.run(plan)))
            newest[where.training, name.evaluation, where.step] = point
    return tuple(newest[key] for key in sorted(newest))


def _place(label: str, entrant: Entrant | None) -> NumberedLabel | None:
    """Return the training and the step of an entrant; None: its step is not known."""
    named = numbered_label(label)
    if entrant is None or entrant.step is None:
        return named
    return NumberedLabel(named.training if named else label, entrant.step)


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
