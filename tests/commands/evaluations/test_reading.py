"""What all evaluations that read have in common."""

import pytest

from commands.errors import EvaluationFault
from commands.evaluating.samples import Sample
from commands.ports import Continuation
from ledger.events.registration import Entrant
from tests.commands.evaluations.examples import Letters, reading


class Silence(Letters):
    """Documents of which nothing is read."""

    def continuations(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return nothing."""
        return super().continuations(sample, entrant)[:0]


def test_a_sample_of_which_nothing_is_read_is_refused() -> None:
    """It would wait for ever, and be owed after each run that seemed to go well."""
    inference, _ = reading(lambda _: -1.0)

    with pytest.raises(EvaluationFault, match="no text to evaluate") as caught:
        Silence("ab")(inference)

    assert caught.value.doing == "getting letters[0]"
