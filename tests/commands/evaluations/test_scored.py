"""What an evaluation's own code says of an answer or a prediction."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from commands.errors import EvaluationFault
from commands.evaluating.rollout import ScoredEvaluation
from ledger.events.evaluations import AnswerObserved, Observation, PredictionObserved
from tests.commands.evaluations.examples import Capitals, Echoes, answering, reading
from tests.evaluations import answer, choice, choices, prediction

FRANCE = ("France?", "Paris")


class Strange(Capitals):
    """Capitals, with a score that the answer decides."""

    def score(self, ys: Sequence[str], y_hats: Sequence[str]) -> Sequence[float]:
        """Take the answer for a number, or for several."""
        return [float(each) for y_hat in y_hats for each in y_hat.split()][: len(ys) + 1]


class StrangeEchoes(Echoes):
    """Texts that are worth nothing that is a number."""

    def score(self, xs: Sequence[str], y_hats: Sequence[str]) -> Sequence[float]:
        """Divide the undividable."""
        return [float("nan") for _ in zip(xs, y_hats, strict=True)]


class Wordless(Capitals):
    """Capitals, with answers that clean to nothing at all."""

    def clean(self, y_hat: str) -> str:
        """Forget what was found."""
        y_hat.strip()
        return None  # type: ignore[return-value]  # a mistake that is easily made


class Halved(Capitals):
    """Capitals, with answers that clean to half a character."""

    def clean(self, y_hat: str) -> str:
        """Cut an emoji where UTF-16 would."""
        return f"{y_hat}\ud83d"


@pytest.mark.parametrize(
    ("evaluation", "said", "why"),
    [
        (Strange(FRANCE), "nan", "score gives nan for 'nan'; a score is a finite number"),
        (Strange(FRANCE), "-inf", "score gives -inf"),
        (Strange(FRANCE), "1 2", "too many values"),
        (Wordless(FRANCE), "Paris", "Wordless.clean gives None, which is not a text"),
        (Halved(FRANCE), "Paris", "Halved.clean gives .* at 5, half of a surrogate pair"),
    ],
)
def test_what_is_no_score_is_told_as_the_evaluation_s_fault(
    evaluation: Capitals, said: str, why: str
) -> None:
    """With the item: the ledger would refuse it, and name neither."""
    inference, _ = answering(lambda _: said)

    with pytest.raises(EvaluationFault, match=why) as caught:
        evaluation(inference)

    assert caught.value.doing == "scoring capitals[0]"


def test_a_prediction_without_a_score_is_told_so_too() -> None:
    """Reading is no surer than answering."""
    inference, _ = reading(lambda _: -1.0)

    with pytest.raises(EvaluationFault, match="score gives nan"):
        StrangeEchoes("ab")(inference)


def test_an_evaluation_without_check_or_score_says_so() -> None:
    """Every answer would count as wrong."""

    class Unchecked(Capitals):
        def check(self, y: str, y_hat: str) -> bool:
            return super(Capitals, self).check(y, y_hat)

    inference, _ = answering(lambda _: "Paris")

    with pytest.raises(EvaluationFault, match="Unchecked defines neither check nor score"):
        Unchecked(FRANCE)(inference)


@pytest.mark.parametrize(
    ("evaluation", "recorded", "found"),
    [
        (Capitals(), answer(0.0, "aspirin\nof course"), ("aspirin", 1.0)),
        (Capitals(), answer(1.0, "heparin"), ("heparin", 0.0)),
        (Echoes(), prediction([1], [1], score=0.0), ("b", 1.0)),
    ],
)
def test_what_is_on_record_is_cleaned_and_scored_again(
    evaluation: ScoredEvaluation,
    recorded: AnswerObserved | PredictionObserved,
    found: tuple[str, float],
) -> None:
    """Another `clean` or `check` needs no GPU; the facts stay as they were."""
    again = evaluation.rescore(recorded)

    assert again == replace(recorded, cleaned=found[0], score=found[1])


def test_no_number_is_not_brought_in_by_scoring_again() -> None:
    """A NaN in one sample is a NaN in all metrics."""
    with pytest.raises(ValueError, match="a score is a finite number"):
        Strange().rescore(answer(1.0, "nan"))


@pytest.mark.parametrize("observation", [choices(choice(-1.0)), prediction([1], [1], score=0.5)])
def test_what_another_kind_observed_is_left_as_it_is(observation: Observation) -> None:
    """Its score is no answer's."""
    assert Capitals().rescore(observation) == observation
