"""Seasons of Elo: battles in an order of play, scored by exactly rounded operations."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.battles.columns import Battle, battles_of
from projections.ratings.elo.lanes import SeasonBattles, season_battles
from projections.ratings.elo.play import WIDEST, ExpectedScore, play_seasons

BATTLES = season_battles(
    battles_of([("A", "B", 1.0, 1), ("A", "B", 0.0, 2), ("A", "B", 0.3, 3), ("B", "C", 0.5, 4)])
)


def gained(
    played: SeasonBattles, *orders: list[int], last: Sequence[float] = (1.0,)
) -> list[list[float]]:
    """Return what each entrant gains in each order, at K = 16."""
    points = play_seasons(played, played.codes[np.array(orders, int)], ks=[16.0], last=last)
    return [lane[:, 0].tolist() for lane in points]


def test_a_soft_score_moves_by_its_share() -> None:
    """Worked by hand: among equals B took 0.7, so it gains 16 x (0.7 - 0.5) = 3.2."""
    assert gained(BATTLES, [2]) == [pytest.approx([-3.2, 3.2, 0.0])]


def test_a_lane_that_waits_moves_nobody() -> None:
    """Lanes of other lengths end together; who waits plays a battle between nobody and nobody."""
    idle = len(BATTLES.codes) - 1

    waiting, alone = gained(BATTLES, [idle, idle, 0], [idle, 0, 1])

    assert [waiting] == gained(BATTLES, [0])
    assert [alone] == gained(BATTLES, [0, 1])


def test_the_rating_may_be_a_mean_over_the_last_battles() -> None:
    """After the first A has 8 points more, and after the second nearly none."""
    (after_one,), (after_two,) = gained(BATTLES, [0]), gained(BATTLES, [0, 1])

    (mean,) = gained(BATTLES, [0, 1], last=(0.5, 0.5))

    assert mean == pytest.approx((np.array(after_one) + np.array(after_two)) / 2)


def test_a_battle_may_weigh_more_than_another() -> None:
    """A weight below 0 takes the rating after that battle off."""
    (after_one,), (after_two,) = gained(BATTLES, [0]), gained(BATTLES, [0, 1])

    (weighted,) = gained(BATTLES, [0, 1], last=(-1.0, 2.0))

    assert weighted == pytest.approx(2 * np.array(after_two) - np.array(after_one))


def test_entrants_beyond_a_byte_are_kept_apart() -> None:
    """Places are kept in the smallest type that holds them, the two nobodies included."""
    rows = [Battle(f"e{n:03}", f"e{n + 1:03}", 1.0, n) for n in range(0, 600, 2)]

    played = season_battles(battles_of(rows))

    points = play_seasons(played, played.codes[None, :300], ks=[16.0])
    assert points[0, :, 0] == pytest.approx([8.0, -8.0] * 300)


@pytest.mark.parametrize("n_ks", [2, 3])
def test_each_k_moves_ratings_as_it_does_alone(n_ks: int) -> None:
    """Ratings under several K are moved together, and how depends on how many there are."""
    orders, ks = BATTLES.codes[[[0, 1, 2, 3], [3, 2, 1, 0]]], [4.0, 16.0, 32.0][:n_ks]

    together = play_seasons(BATTLES, orders, ks=ks, last=(0.5, 0.5))

    alone = [play_seasons(BATTLES, orders, ks=[k], last=(0.5, 0.5)) for k in ks]
    assert together.tolist() == np.concatenate(alone, axis=2).tolist()


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
