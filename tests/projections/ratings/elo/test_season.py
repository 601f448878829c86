"""Seasons of Elo: battles in an order of play, scored by exactly rounded operations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.battles.columns import CannotRate
from projections.ratings.elo.season import outcomes_of, play, play_all
from tests.support.builders.battles import Battle, beaten, in_columns


@given(k=st.floats(min_value=0.01, max_value=50_000.0), a_wins=st.booleans())
def test_a_score_is_expected_as_precisely_as_a_power_tells(k: float, *, a_wins: bool) -> None:
    """However far apart they are: it is the formula, without its power."""
    battles = in_columns([("A", "B", 1.0, 1), ("A", "B", float(a_wins), 2)])
    expected = 1 / (1 + 10 ** min(-k / 400, 300))

    outcomes, numbers = outcomes_of(battles)

    [(of_a, of_b)] = play(outcomes, numbers[None, :], ks=[k])[:, :, 0]

    assert of_a == pytest.approx(k / 2 + k * (a_wins - expected), rel=1e-13, abs=1e-13 * k)
    assert of_a + of_b == pytest.approx(0.0, abs=1e-13 * k)


def test_battles_and_entrants_beyond_a_byte_are_kept_apart() -> None:
    """Numbers are kept in the shortest type that holds them, that of no battle included."""
    rows = [Battle(f"e{n:03}", f"e{n + 1:03}", 1.0, n) for n in range(0, 512, 2)]
    outcomes, numbers = outcomes_of(in_columns(rows))

    points = play(outcomes, np.append(numbers, len(numbers))[None, :], ks=[16.0])

    assert numbers.dtype.itemsize == 2
    assert points[0, :, 0] == pytest.approx([8.0, -8.0] * 256)


def test_weights_are_refused() -> None:
    """A battle that counts three times is played once: to leave that unsaid would be a lie."""
    with pytest.raises(CannotRate, match="these battles have some; use Bradley-Terry"):
        outcomes_of(in_columns([("A", "Z", 1.0, 1, 3.0)]))


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5), most=st.integers(0, 60))
def test_orders_that_do_not_fit_at_once_are_the_same_orders(lengths: list[int], most: int) -> None:
    """Memory bounds how many orders are held, of whatever lengths, and must not decide ratings."""
    battles = in_columns(3 * beaten(("A", "B"), ("B", "C"), ("C", "A")))
    outcomes, numbers = outcomes_of(battles)
    orders = [numbers[:length] for length in lengths]

    found = play_all(outcomes, iter(orders), len(battles), ks=[1.0, 16.0], most_bytes=most)

    alone = [play(outcomes, order[None, :], ks=[1.0, 16.0]) for order in orders]
    assert found.tobytes() == np.concatenate(alone).tobytes()
