"""How many resamples an interval takes."""

import numpy as np
import pytest

from projections.intervals import fewest_resamples, too_few_resamples
from projections.ratings.bradley_terry.uncertainty import percentiles


@pytest.mark.parametrize(
    ("level", "fewest"),
    [(0.001, 3), (0.5, 4), (0.9, 20), (0.95, 40), (0.99, 200), (0.999, 2000), (0.99999, 200_000)],
)
def test_bounds_leave_a_resample_out_at_each_end(level: float, fewest: int) -> None:
    """With one less they are the extremes of what was drawn, whatever level they claim."""
    enough, too_few = np.arange(float(fewest))[:, None], np.arange(fewest - 1.0)[:, None]

    assert fewest_resamples(level) == fewest
    assert [float(bound[0]) for bound in percentiles(enough, level)] == [1.0, fewest - 2.0]
    assert [float(bound[0]) for bound in percentiles(too_few, level)] == [0.0, fewest - 2.0]


def test_a_shortage_says_how_many_it_takes() -> None:
    """Who reads it asks again, and once."""
    assert too_few_resamples(40, 0.95) is None
    assert too_few_resamples(39, 0.95) == ("a 95 % interval needs at least 40 resamples")
