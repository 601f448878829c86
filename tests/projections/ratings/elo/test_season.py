"""Seasons of Elo: battles in an order of play, scored by exactly rounded operations."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.battles.columns import Battles, CannotRate
from projections.ratings.elo.season import numbered, play
from tests.support.builders.battles import Battle, in_columns

BATTLES = in_columns(
    [("A", "B", 1.0, 1), ("A", "B", 0.0, 2), ("A", "B", 0.3, 3), ("B", "C", 0.5, 4)]
)
NONE = len(BATTLES)  # the number of no battle


def gained(
    battles: Battles, *orders: list[int], k: float = 16.0, last: Sequence[float] = (1.0,)
) -> list[list[float]]:
    """Return what each entrant gains in each order."""
    points = play(battles, np.array(orders, np.uint16), ks=[k], last=last)
    return [order[:, 0].tolist() for order in points]


@given(k=st.floats(min_value=0.01, max_value=50_000.0), a_wins=st.booleans())
def test_a_score_is_expected_as_precisely_as_a_power_tells(k: float, *, a_wins: bool) -> None:
    """However far apart they are: it is the formula, without its power."""
    battles = in_columns([("A", "B", 1.0, 1), ("A", "B", float(a_wins), 2)])
    expected = 1 / (1 + 10 ** min(-k / 400, 300))

    [(of_a, of_b)] = gained(battles, [0, 1], k=k)

    assert of_a == pytest.approx(k / 2 + k * (a_wins - expected), rel=1e-13, abs=1e-13 * k)
    assert of_a + of_b == pytest.approx(0.0, abs=1e-13 * k)


def test_an_order_that_waits_moves_nobody() -> None:
    """Orders of other lengths end together; who waits plays a battle between nobody and nobody."""
    waiting, alone = gained(BATTLES, [NONE, NONE, 0], [NONE, 0, 1])

    assert [waiting] == gained(BATTLES, [0])
    assert [alone] == gained(BATTLES, [0, 1])


def test_a_battle_may_weigh_more_than_another() -> None:
    """A weight below 0 takes the rating after that battle off."""
    (after_one,), (after_two,) = gained(BATTLES, [0]), gained(BATTLES, [0, 1])

    (weighted,) = gained(BATTLES, [0, 1], last=(-1.0, 2.0))

    assert weighted == pytest.approx(2 * np.array(after_two) - np.array(after_one))


def test_battles_and_entrants_beyond_a_byte_are_kept_apart() -> None:
    """Numbers are kept in the shortest type that holds them, that of no battle included."""
    rows = [Battle(f"e{n:03}", f"e{n + 1:03}", 1.0, n) for n in range(0, 512, 2)]
    numbers = numbered(in_columns(rows))

    points = play(in_columns(rows), np.append(numbers, len(numbers))[None, :], ks=[16.0])

    assert numbers.dtype.itemsize == 2
    assert points[0, :, 0] == pytest.approx([8.0, -8.0] * 256)


def test_weights_are_refused() -> None:
    """A battle that counts three times is played once: to leave that unsaid would be a lie."""
    with pytest.raises(CannotRate, match="these battles have some; use Bradley-Terry"):
        numbered(in_columns([("A", "Z", 1.0, 1, 3.0)]))
