"""Rollouts: what is asked, how an answer is scored, and what is no answer."""

import math

import numpy as np
import pytest

from commands.errors import EvaluationFault
from commands.evaluating.evaluate import plan_evaluation
from commands.evaluating.samples import Inference
from commands.ports import GenerationFailure, GenerationTask
from commands.settings.sections import EvaluationOptions
from tests.builders import entrant, hydra
from tests.commands.evaluations.examples import Capitals, answering

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
