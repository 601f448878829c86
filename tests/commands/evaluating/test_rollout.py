"""Rollouts: what is asked, how an answer is scored, and what is no answer."""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace

from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.rollout import ScoredEvaluation
from commands.ports import GenerationFailure, GenerationTask
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import Observation
from ledger.events.values import REDACTED
from tests.support.builders.evaluating import Capitals, Echoes, altered, answering
from tests.support.builders.evaluations import answer, choice, choices, prediction
from tests.support.builders.events import entrant, hydra

FRANCE, ITALY, SPAIN = ("France?", "Paris"), ("Italy?", "Rome"), ("Spain?", "Madrid")
ATLAS = Capitals(FRANCE, ITALY, SPAIN)


def knows_france_alone(task: GenerationTask) -> str | GenerationFailure:
    """Answer of France rightly, of Italy wrongly, and not of Spain."""
    if task.prompt_text == "Spain?":
        return GenerationFailure(task.response_key, "not_finite", "NaN")
    return "Paris\nof course"


@pytest.mark.filterwarnings("ignore:.* could not be scored:UserWarning")
def test_the_mean_is_of_what_could_be_scored() -> None:
    """A broken row is no wrong answer: it would look like ignorance. Of none there is no mean."""
    inference, _ = answering(knows_france_alone)
    broken, _ = answering(lambda task: GenerationFailure(task.response_key, "out_of_memory", ""))

    assert ATLAS(inference) == 0.5
    assert ATLAS(inference, reduce="sum") == 1.0
    np.testing.assert_array_equal(ATLAS(inference, reduce="none"), [1.0, 0.0, math.nan])
    assert math.isnan(ATLAS(broken))


def test_answers_to_a_prompt_follow_one_another_and_draw_differently() -> None:
    """An RL trainer compares groups of answers to one prompt."""
    inference, generator = answering(lambda _: "Paris")

    scores = ATLAS(inference, reduce="none", samples_per_prompt=2, temperature=0.7)

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


@pytest.mark.filterwarnings("ignore:.* could not be scored:UserWarning")
def test_all_samples_have_intermediates_of_one_shape() -> None:
    """A trainer stacks them; one that failed has no rows."""
    inference, _ = answering(knows_france_alone)

    _, rows = ATLAS(inference, return_intermediates=True)

    assert len(rows) == 3
    assert [each.ids.shape for each in rows] == [(1, 0), (1, 0), (0, 0)]


@pytest.mark.parametrize(
    ("attribute", "given", "why"),
    [
        ("clean", None, "clean gives None, which is not a text"),
        *(("check", word, "check gives .*, which is neither Tr") for word in ("1", 1.0)),
        ("score", [math.nan], "score gives the score nan; a score is a finite number"),
        ("score", [1.0, 2.0], "score gives 2 scores for 1 samples; it must give one for each"),
        ("score", ["1"], "score gives the score '1', which is not a number"),
        ("score", 1.0, r"score gives 1\.0; it must give a list of 1 numbers"),
    ],
)
def test_what_is_no_text_truth_or_score_is_the_evaluation_s_fault(
    attribute: str, given: object, why: str
) -> None:
    """float("1") is a right answer, float(8) eight of them, and one NaN a NaN in all metrics."""
    inference, _ = answering(lambda _: "Paris")

    with pytest.raises(EvaluationFault, match=rf"Capitals\.{why}") as caught:
        altered(Capitals, FRANCE, **{attribute: lambda *_: given})(inference)

    assert caught.value.doing in {"scoring capitals[0]", "scoring its samples"}


@pytest.mark.parametrize(
    ("attribute", "given", "score"),
    [("check", np.bool_(True), 1.0), ("score", (1,), 1.0), ("score", np.array([0.25]), 0.25)],
)
def test_truths_and_scores_may_be_of_any_library(
    attribute: str, given: object, score: float
) -> None:
    """Most are made by numpy."""
    evaluation = altered(Capitals, FRANCE, **{attribute: lambda *_: given})

    assert evaluation(answering(lambda _: "Paris")[0]) == score


class Ranked(Capitals):
    """Capitals, each worth its answer's rank among all by length."""

    def score(self, ys: Sequence[str], y_hats: Sequence[str]) -> Sequence[float]:
        """Count the answers that are no longer."""
        return [sum(len(other) <= len(y_hat) for other in y_hats) / len(ys) for y_hat in y_hats]


def test_a_score_is_of_all_answers_together() -> None:
    """As the seed calls it: a score over the group would be zero or one of lists of one."""
    said = {"France?": "a", "Italy?": "bb", "Spain?": "ccc"}
    inference, _ = answering(lambda task: said[task.prompt_text], entrant("base"))

    scores = Ranked(FRANCE, ITALY, SPAIN)(inference, reduce="none")

    np.testing.assert_allclose(scores, np.arange(1, 4) / 3)


@pytest.mark.parametrize("reduce", ["avg", "Mean", None])
def test_an_unknown_way_to_combine_scores_is_refused(reduce: object) -> None:
    """It returned the sum, without a word."""
    inference, generator = answering(lambda _: "Paris")

    with pytest.raises(ConfigurationError, match="choose one of 'mean', 'sum', 'none'"):
        ATLAS(inference, reduce=cast("Reduce", reduce))
    assert generator.asked == []


def test_the_call_of_the_seed_is_taken() -> None:
    """A tokenizer in second place, how to combine scores in third, tokens or none in fourth."""
    inference, tokenizer = answering(lambda _: "Paris")[0], object()

    assert ATLAS(inference, tokenizer, "sum") == 1.0
    score, rows = ATLAS(inference, tokenizer, "mean", True)  # as the seed has it
    assert (score, len(rows)) == (1 / 3, 3)
    with pytest.raises(ConfigurationError, match="encoding is 'sum', no tokenizer; write reduce='"):
        ATLAS(inference, "sum")


@pytest.mark.parametrize(
    ("evaluation", "recorded", "found"),
    [
        (Capitals(), answer(0.0, "aspirin\nof course"), ("aspirin", 1.0)),
        (Capitals(), answer(1.0, "heparin"), ("heparin", 0.0)),
        (Echoes(), prediction([1], [1], score=0.0), ("b", 1.0)),
        # the texts are gone: scored again, they would all be alike
        (Capitals(), answer(0.5, REDACTED, text=REDACTED, expected=REDACTED), None),
        (Echoes(), replace(prediction([], [], score=0.5), text=REDACTED), None),
        # of another kind: its score is no answer's
        (Capitals(), choices(choice(-1.0)), None),
        (Capitals(), prediction([1], [1], score=0.5), None),
    ],
)
def test_what_is_on_record_is_cleaned_and_scored_again(
    evaluation: ScoredEvaluation, recorded: Observation, found: tuple[str, float] | None
) -> None:
    """Another `clean` or `check` needs no GPU; the facts stay as they were."""
    again = evaluation.rescore(recorded)

    if found is None:
        assert again == recorded
    else:
        assert again == replace(recorded, cleaned=found[0], score=found[1])
