"""How far two orderings agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.reliability._concordance import kendall, spearman

SCORES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=7)

# A textbook's ten people: intelligence quotient, and hours of television in a week.
QUOTIENTS = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
HOURS = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]


def test_spearmans_rho_is_that_of_a_worked_example() -> None:
    """Squared differences of rank sum to 194, so rho = 1 - 6 * 194 / 990 = -29 / 165."""
    assert spearman(QUOTIENTS, HOURS) == pytest.approx(-29 / 165)


def test_ties_have_their_mean_rank() -> None:
    """Ranks 1.5 1.5 3 and 1 2 3: covariance 1.5, variances 1.5 and 2."""
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(1.5 / 3**0.5)


def test_kendalls_tau_allows_for_ties() -> None:
    """Of 10 pairs 2 agree and 6 do not; 2 are tied on one side and 1 on the other."""
    assert kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) == pytest.approx(-4 / (8 * 9) ** 0.5)


@pytest.mark.parametrize("correlation", [spearman, kendall])
@pytest.mark.parametrize("sides", [([], []), ([1], [2]), ([1, 1], [1, 2]), ([1, 2], [3, 3])])
def test_what_orders_nothing_correlates_with_nothing(
    correlation: object, sides: tuple[list[float], list[float]]
) -> None:
    """Null, not 0: nothing is known of how the judges would order them."""
    assert callable(correlation)
    assert correlation(*sides) is None


@given(scores=SCORES)
def test_an_ordering_agrees_with_itself_and_not_with_its_reverse(
    scores: list[tuple[int, int]],
) -> None:
    """1 and -1 are the ends of the scale, reached exactly."""
    own = [first for first, _ in scores]
    reverse = [-score for score in own]
    ends = (1.0, -1.0) if len(set(own)) > 1 else (None, None)

    assert (spearman(own, own), spearman(own, reverse)) == ends
    assert (kendall(own, own), kendall(own, reverse)) == ends


@given(scores=SCORES)
def test_no_side_comes_first(scores: list[tuple[int, int]]) -> None:
    """Neither judge is the reference."""
    first, second = [a for a, _ in scores], [b for _, b in scores]

    assert spearman(first, second) == spearman(second, first)
    assert kendall(first, second) == kendall(second, first)


@given(scores=SCORES)
def test_only_the_order_counts(scores: list[tuple[int, int]]) -> None:
    """A judge who gives all entrants more wins orders them as before."""
    first, second = [a for a, _ in scores], [b for _, b in scores]
    stretched = [score**3 + 7 for score in second]

    assert spearman(first, stretched) == spearman(first, second)
    assert kendall(first, stretched) == kendall(first, second)
