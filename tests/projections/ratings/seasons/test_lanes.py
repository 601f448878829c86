"""Battles as a season plays them: the winner first, and one dummy to wait with."""

import pytest

from projections.battles.columns import CannotRate, battles_of
from projections.ratings.seasons.lanes import season_battles


def test_a_battle_is_turned_so_that_the_winner_stands_first() -> None:
    """Then only what a loser took must be looked up, which is mostly nothing."""
    rows = [("A", "B", 1.0, 1), ("A", "B", 0.0, 2), ("A", "B", 0.3, 3), ("B", "C", 0.5, 4)]

    played = season_battles(battles_of(rows))

    assert played.winner[:4].tolist() == [0, 1, 1, 1]
    assert played.loser[:4].tolist() == [1, 0, 0, 2]
    assert played.rests[played.rest[:4]] == pytest.approx([0.0, 0.0, 0.3, 0.5])


def test_the_last_battle_is_between_nobody_and_nobody() -> None:
    """A lane that waits plays it, and it must not touch an entrant."""
    played = season_battles(battles_of([("A", "B", 0.5, 1)]))

    assert (played.winner[played.idle], played.loser[played.idle]) == (2, 3)


def test_weights_are_refused() -> None:
    """A battle that counts three times is played once: to leave that unsaid would be a lie."""
    with pytest.raises(CannotRate, match="these battles have some; use Bradley-Terry"):
        season_battles(battles_of([("A", "Z", 1.0, 1, 3.0)]))
