"""Comparisons: every token of a continuation counts, a tie is shared, and NaN never wins."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.samples import Inference, ObservedSample
from commands.ports import Continuation, LikelihoodFailure
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import ChoicesObserved
from tests.support.builders.evaluating import (
    Echoes,
    Endings,
    EndingsByPmi,
    Letters,
    answering,
    reading,
)

SKY = ("The sky is", (" green", " blue"), 1)
GRASS = ("Grass is", (" green", " blue"), 0)


def all_seen(evaluation: Endings, inference: Inference) -> list[ObservedSample]:
    """Return what is observed on all items."""
    batches = evaluation.observe_all(
        inference, evaluation.samples(EvaluationOptions()), EvaluationOptions()
    )
    return [each for batch in batches for each in batch if isinstance(each, ObservedSample)]


def test_the_likeliest_continuation_is_the_choice() -> None:
    """By the sum of all its tokens."""
    inference, _ = reading(lambda passage: -1.0 if passage.text == " blue" else -2.0)

    np.testing.assert_array_equal(Endings(SKY, GRASS)(inference, reduce="none"), [1.0, 0.0])


def test_a_prefix_is_the_users_turn_of_a_chat() -> None:
    """Behind a system prompt, which is no part of the item: that is the same as in plain text."""
    inference, reader = reading(lambda _: -1.0)

    Endings(SKY)(inference, chat="turns", system="Short.")
    Endings(SKY)(inference)

    asked, plain = reader.asked[0], reader.asked[2]
    assert asked.messages == (("system", "Short."), ("user", "The sky is"))
    assert plain.messages == ()
    assert asked.key == plain.key
    assert (asked.entrant.chosen.system, plain.entrant.chosen.system) == ("Short.", None)
    options = EvaluationOptions(chat="turns")
    assert Endings(SKY).asked_as(options).settings(inference, options) == {"is_chat": True}


@pytest.mark.parametrize("evaluation", [Letters("a"), Echoes("a")])
def test_texts_are_no_questions_for_a_chat(evaluation: Letters | Echoes) -> None:
    """They would be read as before, under another name."""
    with pytest.raises(ConfigurationError, match="asks no questions; leave out chat"):
        evaluation(reading(lambda _: -1.0)[0], chat="turns")
    assert evaluation(reading(lambda _: 0.0)[0], chat="none") == 1.0


def test_equally_likely_continuations_share_the_credit() -> None:
    """The first of them would win by where it stands."""
    inference, _ = reading(lambda _: -3.0)

    assert Endings(SKY, ("A", ("x", "y", "z", "w"), 0))(inference, reduce="sum") == 0.75


@pytest.mark.filterwarnings("ignore:.* could not be scored:UserWarning")
def test_a_continuation_that_cannot_be_weighed_leaves_no_choice() -> None:
    """The others would be compared with nothing."""
    inference, _ = reading(
        lambda passage: (
            LikelihoodFailure(passage.key, "not_finite", "NaN")
            if passage.text == " green" and passage.context == "Grass is"
            else -1.0
        )
    )

    np.testing.assert_array_equal(Endings(SKY, GRASS)(inference, reduce="none"), [0.5, math.nan])


def test_continuations_are_weighed_alone_once_for_all_items() -> None:
    """The letters of a test would be weighed a thousand times."""
    inference, reader = reading(lambda passage: -1.0 if passage.context else -4.0)
    evaluation = EndingsByPmi(SKY, GRASS)

    seen = all_seen(evaluation, inference)

    assert sum(passage.context == "" for passage in reader.asked) == 2
    for each in seen:
        assert isinstance(each.observation, ChoicesObserved)
        assert [choice.unconditional for choice in each.observation.choices] == [-4.0, -4.0]
        assert len(each.rows) == 2


def test_intermediates_have_a_row_for_each_choice() -> None:
    """The actions are the tokens that were weighed; T is the same for all."""
    inference, _ = reading(lambda _: -1.0)

    _, [sky, grass] = Endings(SKY, GRASS)(inference, return_intermediates=True)

    assert sky.ids.shape == grass.ids.shape == (2, len("The sky is green"))
    assert "".join(map(chr, sky.ids[1][sky.action_mask[1]])) == " blue"
    assert "".join(map(chr, grass.ids[0][grass.padding_mask[0]])) == "Grass is green"


def test_an_entrant_without_likelihoods_is_told_at_planning() -> None:
    """Hours of other evaluations would be over before."""
    inference, _ = answering(lambda _: "")

    with pytest.raises(ConfigurationError, match="'endings' needs log-likelihoods"):
        Endings(SKY).settings(inference, EvaluationOptions())


def test_samples_of_one_context_are_one_cluster() -> None:
    """Questions about one text are not independent."""

    def weigh(passage: Continuation) -> float:
        return -float(len(passage.text))

    inference, _ = reading(weigh)
    evaluation = Endings(SKY, ("The sky is", (" low", " high"), 0), GRASS)

    clusters = {each.sample.index: each.cluster for each in all_seen(evaluation, inference)}
    assert clusters[0] == clusters[1] != clusters[2]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (
            ("The sky is", (" green", " blue"), 2),
            "gives index 2 for the correct continuation, of 2",
        ),
        (
            ("A", (" b", " c"), -1),
            "gives index -1 for the correct continuation, of 2 counted from 0",
        ),
        (("A", (" b",), 0), "gives 1 continuations; there must be two at least"),
        (("Nothing is", (), 0), "gives 0 continuations; there must be two at least"),
        (("A", "bc", 0), "gives the continuations 'bc'; write a tuple of texts"),
        (("A", (" b", " c")), r"gives \('A', \(' b', ' c'\)\); it must give \(prefix, continuat"),
    ],
)
def test_an_item_that_is_no_choice_is_refused_before_anything_is_recorded(
    item: tuple[str, tuple[str, ...], int], why: str
) -> None:
    """On a ledger that only grows it would be in the way for ever; one choice is always right."""
    with pytest.raises(EvaluationFault, match=rf"Endings\.get\(1\) {why}"):
        Endings(SKY, item).samples(EvaluationOptions())


class Doubled(Endings):
    """Sentences to be ended, worth two points each."""

    def score(self, correct_flags: Sequence[float]) -> Sequence[float]:
        """Double all that is known."""
        assert not any(map(math.isnan, correct_flags))
        return [2 * flag for flag in correct_flags]


class Summed(Endings):
    """Sentences to be ended, with one score for all."""

    def score(self, correct_flags: Sequence[float]) -> Sequence[float]:
        """Add up."""
        return [sum(correct_flags)]


@pytest.mark.filterwarnings("ignore:.* could not be scored:UserWarning")
def test_a_score_of_ones_own_is_of_all_that_could_be_observed() -> None:
    """In their order; what could not be observed stays unknown."""
    inference, _ = reading(
        lambda passage: (
            LikelihoodFailure(passage.key, "not_finite", "NaN")
            if passage.context == "The sky is"
            else -float(len(passage.text))
        )
    )
    items = (SKY, GRASS, ("A", (" b", " cc"), 0))

    np.testing.assert_array_equal(Doubled(*items)(inference, reduce="none"), [math.nan, 0.0, 2.0])
    with pytest.raises(EvaluationFault, match=r"Summed\.score gives 1 scores for 2 samples"):
        Summed(*items)(inference)
