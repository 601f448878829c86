"""Evaluations over the steps of a training."""

import pytest
from msgspec.structs import replace

from ledger.events.evaluations import EvaluationPlanned
from ledger.events.registration import EntrantRegistered, Reference
from ledger.events.registry import Event
from projections.evaluations.metrics import (
    TrainingPoint,
    breaks,
    metrics_over_steps,
    numbered_label,
    training_points,
)
from projections.evaluations.state import evaluations_of
from projections.fold import fold
from tests.support.builders import events as builders
from tests.support.builders.evaluations import answer, completed, observed, plan
from tests.support.builders.events import STREAM, key, recorded


def at(step: int | None, number: int = 1, label: str = "probe", score: float = 1.0) -> list[Event]:
    """Return an evaluation of weights at a step of a training, under one label."""
    who = builders.entrant(label, weights_digest=key(f"{label} {step}"), step=step)
    planned = replace(
        plan(label, n_items=1),
        number=number,
        run_key=key(f"{label} {step}"),
        entrant=Reference(label=label, digest=who.content_digest),
    )
    registered = EntrantRegistered(digest=who.content_digest, entrant=who)
    seen = observed(planned, [answer(score)])
    return [registered, planned, *seen, completed(planned, 1)]


def points(*events: Event) -> tuple[TrainingPoint, ...]:
    """Return the points of a ledger's evaluations."""
    return training_points(fold(evaluations_of(STREAM), recorded(events)))


def places(*events: Event) -> list[tuple[str, int, float | None]]:
    """Return where the points are, and their scores."""
    return [
        (each.training, each.step, each.measured.metrics[0].estimate.value)
        for each in points(*events)
    ]


def test_one_model_in_training_is_a_curve_of_all_its_plans() -> None:
    """Its label stays; only the newest plan is in other tables."""
    assert places(*at(20, 2, score=0.5), *at(10, 1, score=0.0)) == [
        ("probe", 10, 0.0),
        ("probe", 20, 0.5),
    ]


def test_checkpoints_of_one_training_are_a_curve() -> None:
    """By what their labels share; the step that was registered goes before the label's."""
    events = [*at(None, label="olmo-step_9"), *at(12, label="olmo-step_10"), *at(None, label="x")]

    assert [place[:2] for place in places(*events)] == [("olmo", 9), ("olmo", 12)]


def test_an_entrant_that_nobody_registered_may_have_its_step_in_its_label() -> None:
    """A ledger may hold the plan alone."""
    planned = plan("olmo-step_9", n_items=1)

    [point] = points(planned, *observed(planned, [answer()]))

    assert (point.training, point.step, point.entrant) == ("olmo", 9, None)


def test_of_two_plans_of_one_step_the_newest_holds() -> None:
    """Whoever trains again under the same name sees the newer training."""
    again = [replace(each, number=2) if isinstance(each, EvaluationPlanned) else each
             for each in at(10, score=0.0)]  # fmt: skip

    [point] = points(*at(10, score=0.0), *again)

    assert point.measured.run.plan.number == 2


def test_metrics_come_one_after_the_other_each_in_order_of_steps() -> None:
    """As a table is read, and as a figure is drawn."""
    found = metrics_over_steps(points(*at(20, 2), *at(10, 1)))

    names = [(metric.name, point.step) for point, metric in found]
    assert names[:4] == [("score", 10), ("score", 20), ("exact_match", 10), ("exact_match", 20)]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"items": (key("?"),)}, "items"),
        ({"settings": '{"seed":1}', "scorer": key("new")}, "settings and scoring code"),
    ],
)
def test_points_that_do_not_compare_are_told(fields: dict[str, object], what: str) -> None:
    """A step in the curve may be one in the evaluation."""
    later = [
        replace(each, **fields) if isinstance(each, EvaluationPlanned) else each
        for each in at(2_000, 2)
    ]

    found = [*breaks(points(*at(10), *later))]

    assert found == [f"probe on recall: from step 2,000 on with other {what}"]
    assert not [*breaks(points(*at(10), *at(20, 2)))]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("olmo_step_50", ("olmo", 50)),
        ("out/checkpoint-60", ("out", 60)),
        ("run-global_step7", ("run", 7)),
        ("out/checkpoint-60 [turns: Be brief.]", ("out [turns: Be brief.]", 60)),
        ("step_50", ("", 50)),
        ("base", None),
        ("step_50_merged", None),
    ],
)
def test_a_label_may_name_a_step(label: str, expected: tuple[str, int] | None) -> None:
    """As trainers call their checkpoints."""
    assert numbered_label(label) == expected
