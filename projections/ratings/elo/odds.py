"""Play seasons with ratings as odds: faster, if only the final ratings are needed."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats
from projections.ratings.elo.lanes import (
    LN_2,
    LOG2_10,
    POINTS,
    Lanes,
    Orders,
    SeasonBattles,
    chunks,
)
from projections.ratings.elo.play import play_seasons

_HIGHEST: Final = 2.0**400  # of odds that are surely kept in range until they are seen again


def final_gains(
    played: SeasonBattles, orders: Orders, *, ks: Sequence[float], highest: float = _HIGHEST
) -> Floats:
    """Return what `play_seasons` does at the end of a season, to 1e-7 points, faster.

    Odds 10^(R / 400) are kept in place of ratings, so that what is expected takes no power; they
    are multiplied by the power of a step, which is short. K above 32, and lanes whose odds were
    seen above the highest or below its inverse, are played by `play_seasons`.
    """
    gained = np.empty((len(orders), played.n_entrants, len(ks)))
    is_left = np.tile(np.array(ks) > _MOST_K, (len(orders), 1))
    small = [n for n, k in enumerate(ks) if k <= _MOST_K]
    if small:
        lanes = _OddsLanes(played, len(orders), [ks[n] for n in small])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            is_left[:, small] = lanes.play(orders, highest)
            gained[:, :, small] = lanes.gained()
    for n in np.flatnonzero(is_left.any(axis=0)).tolist():
        lane = is_left[:, n]
        gained[lane, :, n] = play_seasons(played, orders[lane], ks=[ks[n]])[:, :, 0]
    return gained


_MOST_K: Final = 32.0
_UNWATCHED: Final = 64  # chunks: 2,048 battles move a rating by 545 doublings at most

# tanh(x / 2) = O / E with u = x / 12.004..., E = u^2 + e and O = u^3 + o u, as Pade has it; the
# three numbers are those of interpolation at Chebyshev's nodes: 6e-13 for steps of 32 points.
_PER_U: Final = 0.0833038901384824
_E, _O = map(np.array, (0.0694002931762512, 0.416548933416458))
_U: Final = LOG2_10 * LN_2 / 400.0 * _PER_U  # u for each point


class _OddsLanes(Lanes):
    """Ratings as odds, 10^(R / 400)."""

    def __init__(self, played: SeasonBattles, n_lanes: int, ks: Sequence[float]) -> None:
        super().__init__(played, n_lanes, ks, start=1.0)
        self._u, self._even, self._odd = np.empty((3, n_lanes * len(ks)))
        self._k = np.tile(np.array(ks) * _U, n_lanes)

    def play(self, orders: Orders, highest: float) -> NDArray[np.bool_]:
        """Play (n_lanes, n_steps) battles; say where odds were out of bounds, (n_lanes, n_ks)."""
        n_lanes, n_ks = self.ratings.shape[1:]
        is_wide = np.zeros((n_lanes, n_ks), dtype=np.bool_)
        for number, chosen in enumerate(chunks(orders), start=1):
            deque(self.steps(chosen), maxlen=0)
            if number % _UNWATCHED == 0:
                is_wide |= self._are_wide(highest)
        return is_wide | self._are_wide(highest)

    def gained(self) -> Floats:
        """Return (n_lanes, n_entrants, n_ks) Elo points."""
        return POINTS * np.swapaxes(_log2(self.ratings[: self.n_entrants]), 0, 1)

    def _are_wide(self, highest: float) -> NDArray[np.bool_]:
        odds = self.ratings
        is_inside = (odds.max(axis=0) < highest) & (odds.min(axis=0) > 1 / highest)
        return np.asarray(~is_inside)

    def _meet(self) -> None:
        """Of odds w and l, the loser was expected to take l / (w + l), which the winner gains."""
        winner, loser = self._winner, self._loser
        u, even, odd = self._u, self._even, self._odd
        np.add(winner, loser, u)
        np.divide(loser, u, u)
        if self._is_shared:
            np.subtract(u, self._rest, u)
        np.multiply(u, self._k, u)
        np.multiply(u, u, even)
        np.add(even, _O, odd)
        np.multiply(odd, u, odd)
        np.add(even, _E, even)
        np.add(even, odd, u)
        np.subtract(even, odd, even)
        factor = np.divide(u, even, u)
        np.multiply(winner, factor, winner)
        np.divide(loser, factor, loser)


_ROOT: Final = 0.7071067811865476
_N_TERMS: Final = 12


def _log2(x: Floats) -> Floats:
    """Return the binary logarithm, by 2 / ln 2 (z + z^3 / 3 + z^5 / 5 + ...), z = (m-1) / (m+1)."""
    m, exponent = np.frexp(x)
    is_low = m < _ROOT
    m, exponent = np.where(is_low, 2.0 * m, m), exponent - is_low
    z = (m - 1.0) / (m + 1.0)
    square, series = z * z, np.zeros_like(z)
    for n in reversed(range(_N_TERMS)):
        series = series * square + 1.0 / (2 * n + 1)
    return np.asarray(exponent + 2.0 / LN_2 * z * series)
