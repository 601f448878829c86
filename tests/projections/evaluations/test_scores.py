"""What a choice earns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.evaluations.scores import credit

WEIGHTS = st.lists(st.sampled_from((-2.0, -1.0, 0.0)), min_size=1, max_size=5)


@given(weights=WEIGHTS)
def test_what_all_places_earn_together_is_one(weights: list[float]) -> None:
    """So guessing is worth 1/k, and no order of the choices is worth more than another."""
    assert sum(credit(weights, place) for place in range(len(weights))) == pytest.approx(1.0)
