"""The score interval of a share."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.intervals import wilson

SHARES = st.tuples(st.integers(1, 10_000), st.floats(min_value=0, max_value=1))


@pytest.mark.parametrize(
    ("won", "n", "interval"),
    [(0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (81, 263, (0.2553, 0.3662))],
)
def test_intervals_are_those_of_the_literature(
    won: int, n: int, interval: tuple[float, float]
) -> None:
    """The last is Newcombe's first example (1998, table I); nothing won is no certainty."""
    assert wilson(won / n, n) == pytest.approx(interval, abs=5e-5)


@given(drawn=SHARES)
def test_a_bound_is_as_far_from_the_share_as_chance_goes(drawn: tuple[int, float]) -> None:
    """The definition: seen from either bound, the share is 1.96 standard errors away, or at it."""
    n, share = drawn

    for bound in wilson(share, n):
        assert 0 <= bound <= 1
        reach = 1.959963984540054 * sqrt(bound * (1 - bound) / n)
        assert abs(share - bound) == pytest.approx(reach, abs=1e-7)


@given(drawn=SHARES)
def test_the_other_side_has_the_mirrored_interval(drawn: tuple[int, float]) -> None:
    """Who is called a is an accident of the alphabet."""
    n, share = drawn

    mine, theirs = wilson(share, n), wilson(1 - share, n)

    assert (mine.lower, mine.upper) == pytest.approx((1 - theirs.upper, 1 - theirs.lower))
