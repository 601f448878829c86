"""One evaluating command: which evaluations of which entrants, then consent, then samples."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from msgspec.structs import replace

from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import Recorder
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.errors import ConfigurationError, EvaluationFault, Refused
from commands.evaluating.evaluate import EvaluationCounts, plan_evaluation
from commands.evaluating.plan import (
    EvaluationPlans,
    evaluate_with_consent,
    plan_evaluations,
)
from commands.evaluating.samples import Inference
from commands.ports import Confirm, Console, GenerationFailure, GenerationTask, no_progress
from commands.settings.schema import Settings
from commands.settings.sections import EvaluationOptions
from commands.spending.budget import SpendingOptions
from commands.spending.pricing import PriceBook
from ledger.events.registration import Entrant
from ledger.events.requests import RequestsSettled
from ledger.identity import EntrantId
from ledger.store import Ledger
from tests.providers.openai import MODEL, FakeOpenAI, Said
from tests.support.builders.commands import open_tournament, settings, types_of
from tests.support.builders.endpoints import responder_of
from tests.support.builders.evaluating import WITHOUT_TASKS, Capitals, answering
from tests.support.builders.events import entrant, judge, opened, prompt, rubric
from tests.support.builders.scores import scoring_rubric
from tests.support.patience import PATIENCE_S

BOOK = PriceBook(None, cache="off", retries=0)
ROLLOUT = {"id": "recall", "uses": "bank-rollout"}
COPYING = {"id": "copying", "uses": "copying"}  # by log-likelihoods
SERVED = entrant("served", loader="endpoint", weights="claude-opus-5-5", dtype=None)


def evaluations(*sections: Mapping[str, str]) -> Settings:
    """Return settings with evaluations."""
    return settings(evaluations=list(sections))


def yes(who: Entrant) -> Inference:
    """Return an entrant that answers, and has no log-likelihoods."""
    return answering(lambda _: "aspirin", who)[0]


def plan(
    chosen: Settings,
    inference_of: Callable[[Entrant], Inference] = yes,
    *,
    who: tuple[Entrant, ...] = (entrant("base"), entrant("tuned")),
    entrants: Sequence[str] = (),
    named: Sequence[str] = (),
) -> EvaluationPlans:
    """Plan evaluations on two prompts."""
    opening = open_tournament(opened(prompts=[prompt("p1"), prompt("p2")], entrants=who))
    return plan_evaluations(
        chosen, Path(), opening, inference_of, WITHOUT_TASKS, entrants=entrants, evaluations=named
    )


def labels(planned: EvaluationPlans) -> list[tuple[str, str]]:
    """Return who is evaluated on what."""
    return [(each.plan.entrant.label, each.plan.evaluation) for each in planned.evaluations]


def evaluate(
    recorder: Recorder, planned: EvaluationPlans, confirm: Confirm | None = None
) -> tuple[EvaluationCounts, int, list[str]]:
    """Evaluate as a command does; return what became of it, and what was told."""
    told: list[str] = []
    console = Console(told.append, confirm, no_progress)
    done = evaluate_with_consent(recorder, planned, BOOK, SpendingOptions(), console)
    return *done, told


def test_every_entrant_is_evaluated_on_everything_unless_options_choose() -> None:
    """Options narrow it down."""
    both = evaluations(ROLLOUT, {**ROLLOUT, "id": "again"})

    assert labels(plan(both)) == [
        ("base", "recall"),
        ("base", "again"),
        ("tuned", "recall"),
        ("tuned", "again"),
    ]
    assert labels(plan(both, entrants=["tuned"], named=["again"])) == [("tuned", "again")]


@pytest.mark.parametrize(
    ("chosen", "options", "fault"),
    [
        (evaluations(), {}, r"no \[\[evaluations\]\]"),
        (evaluations(ROLLOUT), {"entrants": ["base", "amy"]}, "--entrant 'amy' .*: base, tuned"),
        (evaluations(ROLLOUT), {"named": ["arc"]}, "--evaluation 'arc' .*: recall"),
    ],
)
def test_an_option_that_names_nothing_is_refused(
    chosen: Settings, options: dict[str, list[str]], fault: str
) -> None:
    """With the names that there are."""
    with pytest.raises(ConfigurationError, match=fault):
        plan(chosen, **options)  # type: ignore[arg-type]  # names


def test_evaluations_that_cannot_be_made_are_told_all_at_once() -> None:
    """Each by its id, though one is right."""
    wrong = evaluations(ROLLOUT, {"id": "x", "uses": "nothing"}, {"id": "y", "uses": "nothing"})

    with pytest.raises(ConfigurationError) as caught:
        plan(wrong)

    assert [fault.partition(": ")[0] for fault in caught.value.faults] == [
        "evaluation 'x'",
        "evaluation 'y'",
    ]


def test_what_an_entrant_cannot_do_leaves_the_rest_alone(
    ledger: Ledger, recorder: Recorder
) -> None:
    """An endpoint gives texts alone; the rollout runs, and the rest is told."""
    planned = plan(evaluations(ROLLOUT, COPYING))

    done, n_unscorable, told = evaluate(recorder, planned)

    assert labels(planned) == [("base", "recall"), ("tuned", "recall")]
    assert told == list(planned.refused)
    assert [fault.partition(" needs ")[0] for fault in told] == ["evaluation 'copying'"] * 2
    assert (done.n_observed, n_unscorable) == (4, 0)
    assert types_of(ledger).count("SampleObserved") == 4


def test_samples_that_cannot_be_scored_are_counted(recorder: Recorder) -> None:
    """They are not asked again, so somebody should know; what two entrants share is one."""

    def fail_once(task: GenerationTask) -> str | GenerationFailure:
        if "p1" in task.prompt_text:
            return GenerationFailure(task.response_key, "prompt_too_long", "")
        return "aspirin"

    def failing(who: Entrant) -> Inference:
        return answering(fail_once, who)[0]

    twin = replace(entrant("base"), entrant_id=EntrantId("twin"))
    both = plan(evaluations(ROLLOUT), failing, who=(entrant("base"), twin))

    done, n_unscorable, _ = evaluate(recorder, both)

    assert (done.n_observed, n_unscorable) == (1, 1)


@pytest.mark.parametrize("confirm", [None, lambda _: False])
def test_endpoints_are_asked_after_consent_only(
    ledger: Ledger, recorder: Recorder, confirm: Confirm | None
) -> None:
    """Every answer may be billed."""
    planned = plan(evaluations(ROLLOUT), who=(SERVED,))

    with pytest.raises(Refused):
        evaluate(recorder, planned, confirm)

    assert types_of(ledger) == []


class Choking(Capitals):
    """Capitals, with a check that fails at the first question, while others are under way."""

    def __init__(self, *items: tuple[str, str]) -> None:
        """Take questions with their answers."""
        super().__init__(*items)
        self.has_failed = Event()

    def check(self, y: str, y_hat: str) -> bool:
        """Fail at what was asked first."""
        if y_hat == "0?":
            self.has_failed.set()
            raise KeyError("boom")
        return y == y_hat


def test_what_is_under_way_when_an_evaluation_fails_is_recorded_as_it_was_paid(
    ledger: Ledger, recorder: Recorder
) -> None:
    """Else the answers would be bought again once the code is corrected."""
    choking = Choking(*((f"{n}?", "yes") for n in range(40)))
    who = entrant("served", loader="endpoint", weights=MODEL, dtype=None)

    def say(body: Mapping[str, object]) -> Said:
        question = str(cast("Any", body)["messages"][-1]["content"])
        if question != "0?":
            choking.has_failed.wait(PATIENCE_S)
        return Said(question)

    with FakeOpenAI(say) as fake:
        served = Endpoint(fake.url, "entrant", None, n_at_a_time=4)
        serve = partial(EndpointGenerator, responder_of({who.entrant_id: served}))
        inference = Inference(who, None, None, serve)
        planned = plan_evaluation(choking, inference, EvaluationOptions())
        with pytest.raises(EvaluationFault, match=r"scoring capitals\[0\]: KeyError: 'boom'"):
            evaluate(recorder, EvaluationPlans((planned,), ()))

    n_asked = len(fake.traffic.asked)
    assert 4 <= n_asked < 40
    assert types_of(ledger).count("SampleObserved") == n_asked - 1
    assert not recorder.state.requests.under_way
    events = [each.event for each in ledger.read(types={"RequestsSettled"})]
    ends = [end for event in events if isinstance(event, RequestsSettled) for end in event.charges]
    assert [end.fate for end in ends] == ["answered"] * n_asked


JUDGED = {**ROLLOUT, "rubric": "recall.md"}


def plan_judged(section: Mapping[str, str]) -> EvaluationPlans:
    """Plan an evaluation that is judged, by one of two judges."""
    opening = opened(
        prompts=[prompt("p1")],
        rubrics=[rubric("factuality"), replace(scoring_rubric(), dimension=section["id"])],
        judges=[judge("ann"), judge("bob", model="other")],
    )
    return plan_evaluations(
        evaluations(section), Path(), open_tournament(opening), yes, WITHOUT_TASKS
    )


def test_a_plan_names_the_judge_and_the_rubric() -> None:
    """Without more, that of the tournament; another judge changes no answer."""
    first, named = (plan_judged(each).plans[0] for each in (JUDGED, {**JUDGED, "judge": "bob"}))

    assert first.scored_by
    assert named.scored_by
    assert (first.scored_by.judge.label, named.scored_by.judge.label) == ("ann", "bob")
    assert first.scored_by.rubric == named.scored_by.rubric
    assert first.scored_by.scoring != named.scored_by.scoring
    assert first.run_key == named.run_key == plan_judged(ROLLOUT).plans[0].run_key


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({**JUDGED, "judge": "zoe"}, "judge 'zoe' is not on the panel; choose one of: ann, bob"),
        (
            {**COPYING, "rubric": "copying.md"},
            "a judge scores answers, and kind 'encoding' has none",
        ),
    ],
)
def test_a_judge_that_cannot_score_is_refused(section: Mapping[str, str], says: str) -> None:
    """Before anything is generated for it."""
    with pytest.raises(ConfigurationError, match=says):
        plan_judged(section)
