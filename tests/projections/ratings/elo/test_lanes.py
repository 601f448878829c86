"""Battles as a season plays them: the winner first, and one dummy to wait with."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from projections.battles.columns import Battles, CannotRate, battles_of
from projections.ratings.elo.lanes import Orders, Places, SeasonBattles, season_battles


def decoded(played: SeasonBattles, codes: Orders) -> tuple[Places, Places, Places]:
    """Return winners, losers and places in `rests`."""
    each, number = codes.astype(np.intp), (1 << played.n_bits) - 1
    return each & number, each >> played.n_bits & number, each >> 2 * played.n_bits


def test_a_battle_is_turned_so_that_the_winner_stands_first() -> None:
    """Then only what a loser took must be looked up, which is mostly nothing."""
    rows = [("A", "B", 1.0, 1), ("A", "B", 0.0, 2), ("A", "B", 0.3, 3), ("B", "C", 0.5, 4)]

    played = season_battles(battles_of(rows))

    winner, loser, rest = decoded(played, played.codes[:4])
    assert winner.tolist() == [0, 1, 1, 1]
    assert loser.tolist() == [1, 0, 0, 2]
    assert played.rests[rest] == pytest.approx([0.0, 0.0, 0.3, 0.5])


def test_the_last_battle_is_between_nobody_and_nobody() -> None:
    """A lane that waits plays it, and it must not touch an entrant."""
    played = season_battles(battles_of([("A", "B", 0.5, 1)]))

    winner, loser, rest = decoded(played, np.array([played.idle], dtype=np.uint16))
    assert (winner.item(), loser.item(), played.rests[rest].item()) == (2, 3, 0.0)


@given(n_entrants=st.integers(2, 70_000), n_scores=st.integers(1, 5))
@example(n_entrants=70_000, n_scores=100)
def test_a_code_holds_any_number(n_entrants: int, n_scores: int) -> None:
    """A bit too few would turn one entrant into another."""
    of_last = np.linspace(0.0, 0.5, n_scores)
    names = tuple(f"{n:05}" for n in range(n_entrants))
    last = np.full(n_scores, n_entrants - 1)
    first, one = np.zeros_like(last), np.ones(n_scores)

    played = season_battles(Battles(names, last, first, 1.0 - of_last, first, one))

    winner, loser, rest = decoded(played, played.codes[:-1])
    assert (winner == n_entrants - 1).all()
    assert (loser == 0).all()
    assert played.rests[rest] == pytest.approx(of_last)
    assert played.codes.nbytes <= 8 * (n_scores + 1)


def test_weights_are_refused() -> None:
    """A battle that counts three times is played once: to leave that unsaid would be a lie."""
    with pytest.raises(CannotRate, match="these battles have some; use Bradley-Terry"):
        season_battles(battles_of([("A", "Z", 1.0, 1, 3.0)]))
