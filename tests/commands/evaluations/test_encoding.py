"""Encoding: predictions are compared where there is a text, and nowhere else."""

import numpy as np

from commands.evaluating.samples import ObservedSample
from commands.ports import Continuation
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import PredictionObserved
from tests.commands.evaluations.examples import Echoes, reading


def says_z(passage: Continuation) -> str:
    """Predict a text of d's rightly, and end any other in z."""
    return passage.text if set(passage.text) == {"d"} else f"{passage.text[:-1]}z"


def test_a_prediction_is_cleaned_and_checked() -> None:
    """As the evaluation says; that of another letter is wrong."""
    inference, _ = reading(lambda _: -1.0, predict=says_z)

    np.testing.assert_array_equal(Echoes("abc", "dd")(inference, "none"), [0.0, 1.0])


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
