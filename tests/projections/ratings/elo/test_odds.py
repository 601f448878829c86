"""Seasons with ratings as odds: the same ratings as with logarithms, sooner."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from projections.battles.columns import battles_of
from projections.ratings.elo.lanes import SeasonBattles, season_battles
from projections.ratings.elo.odds import final_gains
from projections.ratings.elo.play import play_seasons
from tests.support.strategies.battles import SOFT, WHOLE, any_battles

CLOSE = 1e-7  # Elo points
KS = (1.0, 32.0, 40.0)


def shuffled(played: SeasonBattles, n_lanes: int, seed: int) -> NDArray[np.unsignedinteger]:
    """Return orders of all battles."""
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(played.codes[:-1]) for _ in range(n_lanes)])


def rounds(n: int) -> SeasonBattles:
    """Return n round robins of four, each won by the first in the alphabet."""
    rows = [(a, b, 1.0, turn) for turn in range(n) for a, b in combinations("ABCD", 2)]
    return season_battles(battles_of(rows))


@given(rows=any_battles(scores=WHOLE) | any_battles(scores=SOFT), seed=st.integers(0, 99))
def test_odds_end_where_ratings_do(rows: list[tuple[str, str, float, int]], seed: int) -> None:
    """It is another way to compute the same, whatever the scores and K."""
    played = season_battles(battles_of([(*row[:4], 1.0) for row in rows]))
    orders = shuffled(played, 3, seed)

    gained = final_gains(played, orders, ks=KS)

    assert gained == pytest.approx(play_seasons(played, orders, ks=KS), abs=CLOSE)


def test_thousands_of_battles_end_there_too() -> None:
    """What is missing in each step must not add up."""
    played = rounds(500)
    orders = shuffled(played, 2, seed=1)

    gained = final_gains(played, orders, ks=KS)

    assert gained == pytest.approx(play_seasons(played, orders, ks=KS), abs=CLOSE)


@pytest.mark.parametrize("highest", [1.0, 2.0])
def test_lanes_whose_odds_left_the_range_are_played_again(highest: float) -> None:
    """Odds of 10^300 are the end of floating point; ratings may lie further apart."""
    played = rounds(20)
    orders = shuffled(played, 4, seed=1)

    gained = final_gains(played, orders, ks=[1.0, 32.0], highest=highest)

    logs, odds = (
        play_seasons(played, orders, ks=[1.0, 32.0]),
        final_gains(played, orders, ks=[1.0, 32.0]),
    )
    slow = logs if highest == 1.0 else odds  # K = 1 moves nobody by 120 points
    assert gained[:, :, 0].tolist() == slow[:, :, 0].tolist()
    assert gained[:, :, 1].tolist() == logs[:, :, 1].tolist()
    assert logs[:, :, 1].tolist() != odds[:, :, 1].tolist()
