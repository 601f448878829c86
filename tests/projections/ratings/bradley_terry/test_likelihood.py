import numpy as np

from projections.intervals import Floats
from projections.ratings.bradley_terry.likelihood import maximise
from projections.ratings.bradley_terry.models import Slopes


def test_a_shift_of_all_strengths_out_of_range_is_no_maximum() -> None:
    """Processors round differently; where information is lost, a step may have no span at all."""

    def slopes(parameters: Floats) -> Slopes:
        return np.ones_like(parameters), 1e-18 * np.eye(2)[None]

    found = maximise(slopes, np.zeros((1, 2)), lambda step: np.ptp(step, axis=1))

    assert np.isnan(found).all()
