"""Lay out battles for seasons that are played side by side: one lane for each order."""

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

AT_ONCE: Final = 32  # battles that are decoded together: few enough for the cache

Orders: TypeAlias = NDArray[np.unsignedinteger]
"""Codes of battles in the order of play: (n_steps,), or (n_lanes, n_steps)."""
Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class SeasonBattles:
    """Battles as a season plays them, followed by one dummy battle between two dummy entrants.

    A battle's code has, from the lowest bit, the number of who has at least half of the score, that
    of the other, and the place of the other's score in `rests`. So an order of codes is all that is
    read in playing it, and nothing is looked up. Lanes that wait for longer ones play the dummy
    battle; the dummy entrants have the last numbers.

    Attributes:
        n_entrants: Without the dummies.
        codes: (n_battles + 1,).
        n_bits: Of an entrant's number.
        rests: (n_rests,) the losers' scores, in [0, 1/2], sorted.
    """

    n_entrants: int
    codes: NDArray[np.unsignedinteger]
    n_bits: int
    rests: NDArray[np.float64]

    @property
    def idle(self) -> int:
        """The code of the dummy battle."""
        return int(self.codes[-1])


def season_battles(battles: Battles) -> SeasonBattles:
    """Put the entrant with at least half of the score first; Elo cannot use weights."""
    if (battles.weight != 1.0).any():
        remedy = "use Bradley-Terry, or remove the weights"
        raise CannotRate("Elo cannot use weights, and these battles have some", remedy)
    n = len(battles.entrants)
    a_won = battles.score >= 0.5  # noqa: PLR2004  # half of the one point that a battle is about
    winner = np.append(np.where(a_won, battles.a, battles.b), n)
    loser = np.append(np.where(a_won, battles.b, battles.a), n + 1)
    taken = np.minimum(battles.score, 1.0 - battles.score)
    rests, rest = np.unique(np.append(taken, 0.0), return_inverse=True)
    n_bits = (n + 1).bit_length()
    codes = winner | loser << n_bits | rest << 2 * n_bits
    return SeasonBattles(n, codes.astype(np.min_scalar_type(codes.max())), n_bits, rests)


def chunks(orders: Orders) -> Iterator[Orders]:
    """Yield (n_lanes, n) of the orders, to be played one after the other."""
    for start in range(0, orders.shape[1], AT_ONCE):
        yield orders[:, start : start + AT_ONCE]


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
        self._lane = np.arange(n_lanes)
        self._n_bits, self._number = played.n_bits, np.intp((1 << played.n_bits) - 1)
        self._decoded = np.empty((2, AT_ONCE, n_lanes), np.intp)
        self._met_at = np.empty((AT_ONCE, 2, n_lanes), np.intp)
        self._is_shared = len(played.rests) > 1
        self._rest = np.empty(n)
        self._rest_rows = self._rest.view(item)
        self._rests = np.repeat(played.rests, len(ks)).view(item)

    def steps(self, orders: Orders) -> Iterator[None]:
        """Play (n_lanes, n) battles, n at most AT_ONCE; pause after each."""
        n_lanes, n = orders.shape
        code, entrant = self._decoded[:, :n]
        code[:] = orders.T
        for side in range(2):
            np.bitwise_and(code, self._number, entrant)
            np.multiply(entrant, n_lanes, entrant)
            np.add(entrant, self._lane, self._met_at[:n, side])
            np.right_shift(code, self._n_bits, code)
        for rows, rest in zip(self._met_at[:n].reshape(n, -1), code, strict=True):
            self._rows.take(rows, 0, self._met_rows, "clip")
            if self._is_shared:
                self._rests.take(rest, 0, self._rest_rows, "clip")
            self._meet()
            self._put(rows, self._met_rows)
            yield

    @abstractmethod
    def _meet(self) -> None:
        """Move the winners' and losers' ratings."""
