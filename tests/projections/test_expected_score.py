"""The expected score of Elo, from exactly rounded operations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.ratings._seasons import WIDEST, ExpectedScore

GAPS = st.floats(min_value=-WIDEST, max_value=WIDEST) | st.floats(min_value=-9, max_value=9)


def expected(*gaps: float) -> list[float]:
    """Return the scores that are expected at gaps, in doublings of the odds."""
    return [*map(float, ExpectedScore(len(gaps))(np.array(gaps)))]


@pytest.mark.parametrize(
    ("gap", "score"),
    [(0.0, 1 / 2), (1.0, 1 / 3), (-1.0, 2 / 3), (2.0, 1 / 5), (-10.0, 1024 / 1025)],
)
def test_each_doubling_of_the_odds_counts(gap: float, score: float) -> None:
    """Worked by hand: odds of 2 to 1 against are a third."""
    assert expected(gap) == pytest.approx([score], rel=1e-15)


@given(gaps=st.lists(GAPS, min_size=1, max_size=50))
def test_it_stands_in_for_the_power_of_two(gaps: list[float]) -> None:
    """It must be as good: right to a few units in the last place, however wide the gap."""
    assert expected(*gaps) == pytest.approx([1 / (1 + 2**gap) for gap in gaps], rel=3e-15, abs=0)


@given(gap=GAPS)
def test_both_sides_expect_one_point_together(gap: float) -> None:
    """What is won must be what is lost."""
    assert sum(expected(gap, -gap)) == pytest.approx(1.0, abs=1e-15)


def test_gaps_may_be_of_any_number_and_come_again() -> None:
    """The work space is used for every battle, and keeps nothing of the one before."""
    scores = ExpectedScore(2)

    first = scores(np.array([5.0, -3.0])).tolist()
    scores(np.array([-900.0, 900.0]))

    assert scores(np.array([5.0, -3.0])).tolist() == first
