"""Battles as a season of Elo plays them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.battles import Battles
from projections.errors import CannotRate

_UNWEIGHTED: Final = "rate them by Bradley-Terry, or leave the weights out"


@dataclass(frozen=True)
class Fixtures:
    """Battles as a season plays them, and behind them one more, between nobody and nobody.

    Lanes that wait for longer ones play that; the two nobodies have the last numbers.

    Attributes:
        n_entrants: Without the two.
        winner: (n_battles + 1,) who took at least half.
        loser: (n_battles + 1,) who took the rest.
        rest: (n_battles + 1,) which of the rests it took.
        rests: (n_rests,) in [0, 1/2], sorted.
    """

    n_entrants: int
    winner: NDArray[np.unsignedinteger]
    loser: NDArray[np.unsignedinteger]
    rest: NDArray[np.intp]
    rests: NDArray[np.float64]

    @property
    def idle(self) -> int:
        """The number of the battle between nobody and nobody."""
        return len(self.winner) - 1


def fixtures(battles: Battles) -> Fixtures:
    """Turn battles so that the first took at least half.

    Raises:
        CannotRate: A battle has a weight, and a season plays each once.
    """
    if (battles.weight != 1.0).any():
        raise CannotRate("Elo plays each battle once, and these have weights", _UNWEIGHTED)
    n = len(battles.entrants)
    a_won = battles.score >= 0.5  # noqa: PLR2004  # half of the one point that a battle is about
    winner = np.where(a_won, battles.a, battles.b)
    loser = np.where(a_won, battles.b, battles.a)
    taken = np.minimum(battles.score, 1.0 - battles.score)
    rests, rest = np.unique(np.append(taken, 0.0), return_inverse=True)
    small = np.min_scalar_type(n + 1)
    return Fixtures(
        n_entrants=n,
        winner=np.append(winner, n).astype(small),
        loser=np.append(loser, n + 1).astype(small),
        rest=rest.astype(np.intp),
        rests=rests,
    )
