"""Evaluations that read: predictions are compared where there is a text, and nowhere else."""

import math

import numpy as np
import pytest

from commands.evaluating.samples import ObservedSample
from commands.ports import Continuation, LikelihoodFailure
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import PredictionObserved
from tests.support.builders.evaluating import Echoes, Letters, reading


def says_z(passage: Continuation) -> str:
    """Predict a text of d's rightly, and end any other in z."""
    return passage.text if set(passage.text) == {"d"} else f"{passage.text[:-1]}z"


def test_a_prediction_is_cleaned_and_checked() -> None:
    """As the evaluation says; that of another letter is wrong."""
    inference, _ = reading(lambda _: -1.0, predict=says_z)

    np.testing.assert_array_equal(Echoes("abc", "dd")(inference, reduce="none"), [0.0, 1.0])


def test_what_was_predicted_is_kept_beside_what_was_true() -> None:
    """So that another rule needs no further reading."""
    inference, _ = reading(lambda _: -1.0, predict=says_z)
    evaluation = Echoes("abc")

    [[seen]] = evaluation.observe_all(
        inference, evaluation.samples(EvaluationOptions()), EvaluationOptions()
    )

    assert isinstance(seen, ObservedSample)
    assert seen.observation == PredictionObserved(
        text="abc",
        predicted=(97, 98, 122),
        target=(97, 98, 99),
        prediction="abz",
        cleaned="z",
        score=0.0,
    )


def uniform(passage: Continuation) -> float | LikelihoodFailure:
    """Find each of four letters equally likely."""
    if not passage.text:
        return LikelihoodFailure(passage.key, "empty", "no tokens")
    return -math.log(4) * len(passage.text)


def test_a_uniform_entrant_has_as_much_perplexity_as_letters() -> None:
    """It is the number of equally likely letters."""
    inference, _ = reading(uniform)

    assert Letters("abba", "b")(inference) == pytest.approx(4.0)
    assert Letters("abba", "b")(inference, reduce="sum") == pytest.approx(5 * math.log(4))


def test_the_mean_is_weighted_by_tokens() -> None:
    """A short document says less than a long one."""
    inference, _ = reading(lambda passage: -1.0 if passage.text == "a" else -9.0)

    assert Letters("a", "bbb")(inference) == pytest.approx(math.exp(10 / 4))


@pytest.mark.filterwarnings("ignore:.* could not be scored:UserWarning")
def test_a_document_without_tokens_is_unscorable() -> None:
    """A perplexity of 1 would be the best there is."""
    inference, _ = reading(uniform)

    np.testing.assert_allclose(Letters("", "ab")(inference, reduce="none"), [math.nan, 4.0])
    assert math.isnan(Letters("")(inference))


def test_documents_may_be_longer_than_the_window() -> None:
    """All of their tokens count."""
    inference, reader = reading(uniform)

    Letters("ab")(inference)

    assert [passage.rolls for passage in reader.asked] == [True]
