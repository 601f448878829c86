"""Rollouts: what is asked, how an answer is scored, and what is no answer."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from commands.errors import EvaluationFault
from commands.evaluating.evaluate import plan_evaluation
from commands.evaluating.rollout import ScoredEvaluation
from commands.evaluating.samples import Inference
from commands.ports import GenerationFailure, GenerationTask
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import AnswerObserved, Observation, PredictionObserved
from ledger.events.values import REDACTED
from tests.support.builders.evaluating import Capitals, Echoes, answering, reading
from tests.support.builders.evaluations import answer, choice, choices, prediction
from tests.support.builders.events import entrant, hydra

FRANCE, ITALY, SPAIN = ("France?", "Paris"), ("Italy?", "Rome"), ("Spain?", "Madrid")
ATLAS = Capitals(FRANCE, ITALY, SPAIN)


def knows_france_alone(task: GenerationTask) -> str | GenerationFailure:
    """Answer of France rightly, of Italy wrongly, and not of Spain."""
    if task.prompt_text == "Spain?":
        return GenerationFailure(task.response_key, "not_finite", "NaN")
    return "Paris\nof course"


def test_the_mean_is_of_what_could_be_scored() -> None:
    """A broken row is no wrong answer: it would look like ignorance."""
    inference, _ = answering(knows_france_alone)

    assert ATLAS(inference) == 0.5
    assert ATLAS(inference, "sum") == 1.0
    np.testing.assert_array_equal(ATLAS(inference, "none"), [1.0, 0.0, math.nan])


def test_nothing_scored_has_no_mean() -> None:
    """Nought would be a claim."""
    inference, _ = answering(lambda task: GenerationFailure(task.response_key, "out_of_memory", ""))

    assert math.isnan(ATLAS(inference))


def test_answers_to_a_prompt_follow_one_another_and_draw_differently() -> None:
    """An RL trainer compares groups of answers to one prompt."""
    inference, generator = answering(lambda _: "Paris")

    scores = ATLAS(inference, "none", samples_per_prompt=2, temperature=0.7)

    np.testing.assert_array_equal(scores, [1, 1, 0, 0, 0, 0])
    assert [task.prompt_text for task in generator.asked[:3]] == ["France?", "France?", "Italy?"]
    assert len({task.seed for task in generator.asked}) == 6


def test_an_evaluation_decides_how_an_entrant_decodes() -> None:
    """An entrant's own temperature is for its tournament."""
    inference, generator = answering(lambda _: "", entrant("hot", temperature=1.5))

    ATLAS(inference)
    ATLAS(inference, temperature=0.3, top_p=0.9)

    cold, warm = generator.asked[0], generator.asked[-1]
    assert (cold.entrant.temperature, warm.entrant.temperature) == (None, 0.3)
    assert (cold.entrant.max_new_tokens, warm.options.top_p) == (4, 0.9)


def test_a_seed_is_part_of_a_run_only_where_something_is_drawn() -> None:
    """A greedy answer is not bought again under another seed."""
    inference, _ = answering(lambda _: "")
    of_heads, _ = answering(lambda _: "", entrant("jury", loader="hydra", hydra=hydra()))

    assert "seed" not in ATLAS.settings(inference, EvaluationOptions(seed=1))
    assert ATLAS.settings(inference, EvaluationOptions(temperature=1.0, seed=1))["seed"] == 1
    assert ATLAS.settings(of_heads, EvaluationOptions(seed=1))["seed"] == 1


def test_all_samples_have_intermediates_of_one_shape() -> None:
    """A trainer stacks them; one that failed has no rows."""
    inference, _ = answering(knows_france_alone)

    _, rows = ATLAS(inference, return_intermediates=True)

    assert len(rows) == 3
    assert [each.ids.shape for each in rows] == [(1, 0), (1, 0), (0, 0)]


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        ("Answer:", r"Stopped\.stop is 'Answer:'; write a tuple of texts, with its comma"),
        (("Q:", ""), r"Stopped\.stop is \('Q:', ''\); remove the empty text"),
        ((2,), r"Stopped\.stop is 2, which is not a text"),
        (None, r"Stopped\.stop is None; write a tuple of texts"),
    ],
)
def test_a_stop_that_is_not_several_texts_is_refused(stop: object, why: str) -> None:
    """Answers would end at any letter of it, or at once, and be scored as if they were whole."""
    inference, generator = answering(lambda _: "Paris")
    evaluation = type("Stopped", (Capitals,), {"stop": stop})(FRANCE)

    with pytest.raises(EvaluationFault, match=why):
        plan_evaluation(evaluation, inference, EvaluationOptions())
    with pytest.raises(EvaluationFault, match=why):
        evaluation(inference)
    assert generator.asked == []


def test_stop_texts_may_stand_in_a_list() -> None:
    """They are as clear there."""
    inference, generator = answering(lambda _: "Paris")

    type("Stopped", (Capitals,), {"stop": ["Q:"]})(FRANCE)(inference)

    assert generator.asked[0].options.stop == ("Q:",)


@pytest.mark.parametrize("n_new", [0, -1])
def test_an_answer_of_no_tokens_is_refused(n_new: int) -> None:
    """Each would be empty, and count as wrong."""

    class Curt(Capitals):
        def max_new_tokens(self, inference: Inference) -> int:
            return n_new * super().max_new_tokens(inference)

    inference, _ = answering(lambda _: "Paris")

    with pytest.raises(ValueError, match="it must be at least 1"):
        Curt(FRANCE).configured(inference, EvaluationOptions())


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


@pytest.mark.parametrize(
    ("evaluation", "remaining"),
    [
        (Capitals(), answer(0.5, REDACTED, text=REDACTED, expected=REDACTED)),
        (Echoes(), replace(prediction([], [], score=0.5), text=REDACTED)),
    ],
)
def test_what_was_redacted_keeps_the_score_on_record(
    evaluation: ScoredEvaluation, remaining: AnswerObserved | PredictionObserved
) -> None:
    """The texts are gone: scored again, they would all be alike."""
    assert evaluation.rescore(remaining) == remaining


def test_no_number_is_not_brought_in_by_scoring_again() -> None:
    """A NaN in one sample is a NaN in all metrics."""
    with pytest.raises(ValueError, match="a score is a finite number"):
        Strange().rescore(answer(1.0, "nan"))


@pytest.mark.parametrize("observation", [choices(choice(-1.0)), prediction([1], [1], score=0.5)])
def test_what_another_kind_observed_is_left_as_it_is(observation: Observation) -> None:
    """Its score is no answer's."""
    assert Capitals().rescore(observation) == observation
