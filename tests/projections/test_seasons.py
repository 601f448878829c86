"""Seasons of Elo, side by side."""

import numpy as np
import pytest

from projections.battles.columns import Battle, battles_of
from projections.ratings._seasons import SeasonBattles, play_seasons, season_battles

BATTLES = season_battles(
    battles_of([("A", "B", 1.0, 1), ("A", "B", 0.0, 2), ("A", "B", 0.3, 3), ("B", "C", 0.5, 4)])
)


def gained(played: SeasonBattles, *orders: list[int], n_last: int = 1) -> list[list[float]]:
    """Return what each entrant gains in each order, at K = 16."""
    points = play_seasons(played, np.array(orders, dtype=np.uint8), ks=[16.0], n_last=n_last)
    return [lane[:, 0].tolist() for lane in points]


def test_a_soft_score_moves_by_its_share() -> None:
    """Worked by hand: among equals B took 0.7, so it gains 16 x (0.7 - 0.5) = 3.2."""
    assert gained(BATTLES, [2]) == [pytest.approx([-3.2, 3.2, 0.0])]


def test_a_lane_that_waits_moves_nobody() -> None:
    """Lanes of other lengths end together; who waits plays a battle between nobody and nobody."""
    idle = BATTLES.idle

    waiting, alone = gained(BATTLES, [idle, idle, 0], [idle, 0, 1])

    assert [waiting] == gained(BATTLES, [0])
    assert [alone] == gained(BATTLES, [0, 1])


def test_the_rating_may_be_a_mean_over_the_last_battles() -> None:
    """After the first A has 8 points more, and after the second nearly none."""
    (after_one,), (after_two,) = gained(BATTLES, [0]), gained(BATTLES, [0, 1])

    (mean,) = gained(BATTLES, [0, 1], n_last=2)

    assert mean == pytest.approx((np.array(after_one) + np.array(after_two)) / 2)


def test_entrants_beyond_a_byte_are_kept_apart() -> None:
    """Places are kept in the smallest type that holds them, the two nobodies included."""
    rows = [Battle(f"e{n:03}", f"e{n + 1:03}", 1.0, n) for n in range(0, 600, 2)]

    played = season_battles(battles_of(rows))

    points = play_seasons(played, np.arange(300)[None, :].astype(np.uint16), ks=[16.0])
    assert points[0, :, 0] == pytest.approx([8.0, -8.0] * 300)


@pytest.mark.parametrize("n_ks", [2, 3])
def test_each_k_moves_ratings_as_it_does_alone(n_ks: int) -> None:
    """Ratings under several K are moved together, and how depends on how many there are."""
    orders, ks = np.array([[0, 1, 2, 3], [3, 2, 1, 0]], dtype=np.uint8), [4.0, 16.0, 32.0][:n_ks]

    together = play_seasons(BATTLES, orders, ks=ks, n_last=2)

    alone = [play_seasons(BATTLES, orders, ks=[k], n_last=2) for k in ks]
    assert together.tolist() == np.concatenate(alone, axis=2).tolist()
