"""What evaluations ask of entrants behind endpoints, and what they took; no money is forgotten."""

import pytest
from msgspec.structs import replace

from commands.decisions.recorder import EvaluationRecorder
from commands.evaluating.evaluate import (
    PlannedEvaluation,
    evaluate_owed,
    owed_requests,
    plan_evaluation,
)
from commands.evaluating.evaluation import Evaluation
from commands.ports import no_progress
from commands.settings.sections import EvaluationOptions
from commands.spending.endpoints import evaluation_usage
from ledger.events.registration import Entrant, Reference
from ledger.identity import EntrantId
from ledger.store import Ledger
from tests.builders import STREAM, entrant, key
from tests.commands.evaluations.examples import Capitals, Letters, answering, reading

ATLAS = Capitals(*((f"{n}?", "yes") for n in range(6)))
SERVED = entrant("base", loader="endpoint", weights="org/large", dtype=None)
TWIN = replace(SERVED, entrant_id=EntrantId("twin"))
REGISTERED = {
    Reference(label=each.entrant_id, digest=each.content_digest): each for each in (SERVED, TWIN)
}


@pytest.fixture
def recorder(ledger: Ledger) -> EvaluationRecorder:
    """Give the evaluations of an empty ledger."""
    return EvaluationRecorder(ledger, STREAM)


def planned(
    terms: EvaluationOptions, *, who: Entrant = SERVED, evaluation: Evaluation = ATLAS
) -> PlannedEvaluation:
    """Plan an evaluation of whoever says yes."""
    return plan_evaluation(evaluation, answering(lambda _: "yes", who)[0], terms)


class Unasked(Capitals):
    """Items that nobody may look at once they have their names."""

    def get(self, index: int) -> tuple[str, str]:
        """Refuse."""
        raise AssertionError(index)


def test_answers_to_earlier_plans_were_paid_too(recorder: EvaluationRecorder) -> None:
    """Whoever tries another temperature, and then fewer items, has not got the money back."""
    for terms in (
        EvaluationOptions(length=3),
        EvaluationOptions(length=4, temperature=0.7),
        EvaluationOptions(length=1),
    ):
        evaluate_owed(recorder, planned(terms), on_progress=no_progress)

    used = [*evaluation_usage(recorder.state, REGISTERED)]

    assert {each.entrant for each in used} == {SERVED}
    assert len(used) == 3 + 4


def test_an_answer_is_of_the_model_that_gave_it(recorder: EvaluationRecorder) -> None:
    """Its label may stand for a dearer one by now."""
    dear = replace(SERVED, weights="org/dear", weights_digest=key("dear"))
    for who in (SERVED, dear):
        evaluate_owed(
            recorder, planned(EvaluationOptions(length=2), who=who), on_progress=no_progress
        )
    reference = Reference(label=dear.entrant_id, digest=dear.content_digest)

    used = [*evaluation_usage(recorder.state, {**REGISTERED, reference: dear})]

    assert [each.entrant.weights for each in used].count("org/dear") == 2
    assert len(used) == 4


@pytest.mark.parametrize("lengths", [(1, 5), (5, 1)])
def test_a_run_under_two_labels_counts_in_full_and_once(
    recorder: EvaluationRecorder, lengths: tuple[int, int]
) -> None:
    """The shorter plan, whichever it is, does not hide what the longer took."""
    for who, length in zip((SERVED, TWIN), lengths, strict=True):
        evaluate_owed(
            recorder, planned(EvaluationOptions(length=length), who=who), on_progress=no_progress
        )

    assert len([*evaluation_usage(recorder.state, REGISTERED)]) == 5


def test_only_what_is_put_to_an_endpoint_is_looked_up(recorder: EvaluationRecorder) -> None:
    """An item of a large data set may take a while to make, and weights here cost nothing."""
    here = planned(EvaluationOptions(), who=entrant("here"))
    unasked = here._replace(evaluation=Unasked())

    requests = owed_requests(recorder.state, [unasked, planned(EvaluationOptions())])

    assert [each.entrant.entrant_id for each in requests] == ["base"] * 6


@pytest.mark.parametrize(("limit", "n_asked"), [(None, 6), (8, 6), (5, 3), (2, 0)])
def test_a_limit_counts_samples_that_cost_nothing(
    recorder: EvaluationRecorder, limit: int | None, n_asked: int
) -> None:
    """As the run does that is agreed to: what lies behind it is not asked, nor paid."""
    letters = plan_evaluation(Letters("a", "b"), reading(lambda _: -1.0)[0], EvaluationOptions())

    requests = owed_requests(recorder.state, [letters, planned(EvaluationOptions())], limit=limit)

    assert len(requests) == n_asked
