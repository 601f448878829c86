"""Battles as a season plays them, and the lanes that play, whatever stands for a rating."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles, CannotRate

LOG2_10: Final = 3.321928094887362
LN_2: Final = 0.6931471805599453
POINTS: Final = 400.0 / LOG2_10  # of Elo, for each doubling of the odds

AT_ONCE: Final = 32  # battles whose places are looked up together: few enough for the cache

Orders: TypeAlias = NDArray[np.unsignedinteger]
Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class SeasonBattles:
    """Battles as a season plays them, followed by one dummy battle between two dummy entrants.

    Lanes that wait for longer ones play the dummy battle; the dummy entrants have the last numbers.

    Attributes:
        n_entrants: Without the dummies.
        winner: (n_battles + 1,) who has at least half of the score.
        loser: (n_battles + 1,) the other.
        rest: (n_battles + 1,) index of the loser's score in rests.
        rests: (n_rests,) the losers' scores, in [0, 1/2], sorted.
    """

    n_entrants: int
    winner: NDArray[np.unsignedinteger]
    loser: NDArray[np.unsignedinteger]
    rest: NDArray[np.intp]
    rests: NDArray[np.float64]

    @property
    def idle(self) -> int:
        """The number of the dummy battle."""
        return len(self.winner) - 1


def season_battles(battles: Battles) -> SeasonBattles:
    """Put the entrant with at least half of the score first; Elo cannot use weights."""
    if (battles.weight != 1.0).any():
        remedy = "use Bradley-Terry, or remove the weights"
        raise CannotRate("Elo cannot use weights, and these battles have some", remedy)
    n = len(battles.entrants)
    a_won = battles.score >= 0.5  # noqa: PLR2004  # half of the one point that a battle is about
    winner = np.where(a_won, battles.a, battles.b)
    loser = np.where(a_won, battles.b, battles.a)
    taken = np.minimum(battles.score, 1.0 - battles.score)
    rests, rest = np.unique(np.append(taken, 0.0), return_inverse=True)
    small = np.min_scalar_type(n + 1)
    return SeasonBattles(
        n_entrants=n,
        winner=np.append(winner, n).astype(small),
        loser=np.append(loser, n + 1).astype(small),
        rest=rest.astype(np.intp),
        rests=rests,
    )


def chunks(orders: Orders) -> Iterator[Places]:
    """Yield (n, n_lanes) numbers of battles, to be played row by row."""
    for start in range(0, orders.shape[1], AT_ONCE):
        yield orders[:, start : start + AT_ONCE].T.astype(np.intp, order="C")


class Lanes(ABC):
    """The ratings of all lanes, and buffers to update them.

    The ratings of an entrant in a lane, one for each K, are moved as one opaque item, which NumPy
    does faster than rows of numbers. An entrant's lanes lie side by side: so the few that play most
    stay in the cache.
    """

    def __init__(
        self, played: SeasonBattles, n_lanes: int, ks: Sequence[float], start: float
    ) -> None:
        n, item = n_lanes * len(ks), np.dtype((np.void, 8 * len(ks)))
        self.n_entrants = played.n_entrants
        self.ratings = np.full((played.n_entrants + 2, n_lanes, len(ks)), start)
        self._rows = self.ratings.reshape(-1).view(item)
        # NumPy assigns faster by index where it knows the item's size, as of one or two numbers.
        self._put = self._rows.__setitem__ if len(ks) <= 2 else self._rows.put  # noqa: PLR2004  # above
        self._met = np.empty(2 * n)
        self._winner, self._loser = np.split(self._met, 2)
        self._met_rows = self._met.view(item)
        self._sides = [each.astype(np.intp) * n_lanes for each in (played.winner, played.loser)]
        self._lane = np.arange(n_lanes)
        self._is_shared = len(played.rests) > 1
        self._rest = np.empty(n)
        self._rest_rows = self._rest.view(item)
        self._rests = np.repeat(played.rests, len(ks)).view(item)
        self._rest_of = played.rest

    def steps(self, chosen: Places) -> Iterator[None]:
        """Play (n, n_lanes) battles; pause after each."""
        for battles, met in zip(chosen, self._places(chosen), strict=True):
            self._rows.take(met, 0, self._met_rows, "clip")
            if self._is_shared:
                self._rests.take(self._rest_of.take(battles), 0, self._rest_rows, "clip")
            self._meet()
            self._put(met, self._met_rows)
            yield

    @abstractmethod
    def _meet(self) -> None:
        """Move the winners' and losers' ratings."""

    def _places(self, chosen: Places) -> Places:
        """Return (n, 2 n_lanes) rows of the entrants that play, winners before losers."""
        found = np.empty_like(chosen)
        places = np.empty((len(chosen), 2, len(self._lane)), dtype=np.intp)
        for side, first in enumerate(self._sides):
            first.take(chosen, out=found, mode="clip")
            np.add(found, self._lane, places[:, side])
        return places.reshape(len(chosen), -1)
