"""Rollouts: what is asked, how an answer is scored, and what is no answer."""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from msgspec.structs import replace

from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.evaluate import plan_evaluation
from commands.evaluating.rollout import ScoredEvaluation
from commands.ports import GenerationFailure, GenerationTask
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import AnswerObserved, Observation, PredictionObserved
from ledger.events.values import REDACTED
from tests.support.builders.evaluating import Capitals, Echoes, answering
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
    """A broken row is no wrong answer: it would look like ignorance."""
    inference, _ = answering(knows_france_alone)

    assert ATLAS(inference) == 0.5
    assert ATLAS(inference, reduce="sum") == 1.0
    np.testing.assert_array_equal(ATLAS(inference, reduce="none"), [1.0, 0.0, math.nan])


@pytest.mark.filterwarnings("ignore:.* could not be scored:UserWarning")
def test_nothing_scored_has_no_mean() -> None:
    """Nought would be a claim."""
    inference, _ = answering(lambda task: GenerationFailure(task.response_key, "out_of_memory", ""))

    assert math.isnan(ATLAS(inference))


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


class Strange(Capitals):
    """Capitals, with scores that no type checker would let pass."""

    def __init__(self, scores: object) -> None:
        """Take what `score` gives for one answer."""
        super().__init__(FRANCE)
        self._scores = scores

    def score(self, ys: Sequence[str], y_hats: Sequence[str]) -> Sequence[float]:  # noqa: ARG002
        """Give it."""
        return cast("Sequence[float]", self._scores)


class Undecided(Capitals):
    """Capitals, with a check that is neither True nor False."""

    def __init__(self, word: object) -> None:
        """Take what `check` gives."""
        super().__init__(FRANCE)
        self._word = word

    def check(self, y: str, y_hat: str) -> bool:  # noqa: ARG002
        """Give it."""
        return cast("bool", self._word)


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
        (Wordless(FRANCE), "Paris", "Wordless.clean gives None, which is not a text"),
        (Halved(FRANCE), "Paris", "Halved.clean gives .* at 5, half of a surrogate pair"),
    ],
)
def test_what_is_no_text_is_told_as_the_evaluation_s_fault(
    evaluation: Capitals, said: str, why: str
) -> None:
    """With the item: the ledger would refuse it, and name neither."""
    inference, _ = answering(lambda _: said)

    with pytest.raises(EvaluationFault, match=why) as caught:
        evaluation(inference)

    assert caught.value.doing == "scoring capitals[0]"


@pytest.mark.parametrize("word", ["1", 8, None, 1.0])
def test_a_check_that_says_neither_yes_nor_no_is_told(word: object) -> None:
    """float("1") is a right answer, and float(8) is eight of them."""
    inference, _ = answering(lambda _: "Paris")

    with pytest.raises(EvaluationFault, match=r"Undecided\.check gives .*, which is neither Tr"):
        Undecided(word)(inference)


@pytest.mark.parametrize("word", [True, np.bool_(True)])
def test_a_check_may_say_so_in_numpy(word: object) -> None:
    """As the comparison of two arrays does."""
    assert Undecided(word)(answering(lambda _: "Paris")[0]) == 1.0


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ([math.nan], "gives the score nan; a score is a finite number"),
        ([-math.inf], "gives the score -inf; a score is a finite number"),
        ([1.0, 2.0], "gives 2 scores for 1 samples; it must give one for each"),
        ([], "gives 0 scores for 1 samples"),
        (["1"], "gives the score '1', which is not a number"),
        ([None], "gives the score None, which is not a number"),
        ("1", "gives '1'; it must give a list of 1 numbers"),
        (1.0, r"gives 1\.0; it must give a list of 1 numbers"),
    ],
)
def test_what_is_no_score_is_told_as_the_evaluation_s_fault(scores: object, why: str) -> None:
    """A NaN in one sample is a NaN in all metrics."""
    inference, _ = answering(lambda _: "Paris")

    with pytest.raises(EvaluationFault, match=rf"Strange\.score {why}"):
        Strange(scores)(inference)


@pytest.mark.parametrize("scores", [[1], (0.5,), np.array([0.25]), [np.float32(2)], [np.True_]])
def test_scores_may_be_numbers_of_any_library(scores: Sequence[float]) -> None:
    """Most are made by numpy."""
    assert Strange(scores)(answering(lambda _: "Paris")[0]) == float(scores[0])


class Ranked(Capitals):
    """Capitals, each worth its answer's rank among all by length."""

    def score(self, ys: Sequence[str], y_hats: Sequence[str]) -> Sequence[float]:
        """Count the answers that are no longer."""
        return [sum(len(other) <= len(y_hat) for other in y_hats) / len(ys) for y_hat in y_hats]


@pytest.mark.parametrize("n_items", [1, 3])
def test_a_score_is_of_all_answers_together(n_items: int) -> None:
    """As the seed calls it: a score over the group would be zero or one of lists of one."""
    said = {"France?": "a", "Italy?": "bb", "Spain?": "ccc"}
    inference, _ = answering(lambda task: said[task.prompt_text], entrant("base"))

    scores = Ranked(*(FRANCE, ITALY, SPAIN)[:n_items])(inference, reduce="none")

    np.testing.assert_allclose(scores, np.arange(1, n_items + 1) / n_items)


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


@pytest.mark.parametrize("observation", [choices(choice(-1.0)), prediction([1], [1], score=0.5)])
def test_what_another_kind_observed_is_left_as_it_is(observation: Observation) -> None:
    """Its score is no answer's."""
    assert Capitals().rescore(observation) == observation
