"""Play seasons with ratings as logarithms: every K, and means over the last battles."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats
from projections.ratings.elo.lanes import (
    LN_2,
    POINTS,
    Lanes,
    Orders,
    SeasonBattles,
    chunks,
)

# What stands in the fraction below from 1 to 9, so scaled that f can stand for x.
_TERMS: Final = tuple(np.array(odd * 2.0 / LN_2) for odd in (1, 3, 5, 7))
_LAST: Final = np.array(LN_2 / 18.0)

# A number below 2^51 added to this loses its fraction, and stands in the lowest bits of the sum.
_ROUNDER: Final = np.array(1.5 * 2.0**52)
_EXPONENT: Final = np.array(52, dtype=np.uint64)  # the bit at which a float64 keeps its exponent

WIDEST: Final = 1000.0  # doublings: further apart, the exponent of a float64 would run over


class ExpectedScore:
    """Buffers to compute the expected scores of n games at once."""

    def __init__(self, n: int) -> None:
        self._whole, self._square, self._curve = np.empty((3, n))
        self._shift = self._whole.view(np.uint64)
        self._above = self._square  # which is done with by then
        self._above_bits = self._above.view(np.uint64)

    def __call__(self, gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 / (1 + 2^gap), (n,) to 1e-15.

        The gaps say by how many doublings of the odds the opponent is better, at most WIDEST.
        2^gap = 2^n 2^f with n whole and |f| <= 1/2; with x = f ln(2) / 2 and C = x / tanh(x),
        2^f = (C + x) / (C - x). Cut off after its fifth term, the continued fraction
        C = 1 + x^2 / (3 + x^2 / (5 + x^2 / (7 + ...))) (Lambert 1768) is right to 1e-15 there.
        The gaps are overwritten; so is the result, by the next call.
        """
        whole, square, curve = self._whole, self._square, self._curve
        first, second, third, fourth = _TERMS
        np.add(gap, _ROUNDER, whole)
        np.subtract(whole, _ROUNDER, square)
        f = np.subtract(gap, square, gap)
        np.left_shift(self._shift, _EXPONENT, self._shift)
        np.multiply(f, f, square)
        np.multiply(square, _LAST, curve)
        np.add(curve, fourth, curve)
        for term in (third, second, first):
            np.divide(square, curve, curve)
            np.add(curve, term, curve)
        above = np.add(curve, f, self._above)
        below = np.subtract(curve, f, curve)
        np.add(self._above_bits, self._shift, self._above_bits)  # times 2^n
        np.add(above, below, above)
        return np.divide(below, above, below)


def play_seasons(
    played: SeasonBattles, orders: Orders, *, ks: Sequence[float], last: Sequence[float] = (1.0,)
) -> Floats:
    """Play a season in each lane, under each K: (n_lanes, n_entrants, n_ks) Elo points gained.

    The expected score of a is E = 1 / (1 + 10^((R_b - R_a) / 400)); after a battle in which it
    scored S, R_a += K (S - E) and R_b -= K (S - E) (Elo 1978). The rating is the sum over the
    last battles of what it was after each, times the battle's weight in `last`.
    """
    n_before = max(0, orders.shape[1] - len(last))
    weight = iter(last[len(last) - (orders.shape[1] - n_before) :])
    lanes = _LogLanes(played, len(orders), ks)
    for chosen in chunks(orders[:, :n_before]):
        deque(lanes.steps(chosen), maxlen=0)
    for chosen in chunks(orders[:, n_before:]):
        for _ in lanes.steps(chosen):
            np.multiply(lanes.ratings, next(weight), lanes.weighted)
            np.add(lanes.sums, lanes.weighted, lanes.sums)
    return np.swapaxes(lanes.sums[: played.n_entrants], 0, 1) * POINTS


class _LogLanes(Lanes):
    """Ratings in doublings of the odds; sums of them over some battles."""

    def __init__(self, played: SeasonBattles, n_lanes: int, ks: Sequence[float]) -> None:
        super().__init__(played, n_lanes, ks, start=0.0)
        n = n_lanes * len(ks)
        self._gap, self._expected = np.empty(n), ExpectedScore(n)
        self._k = np.tile(np.array(ks) / POINTS, n_lanes)
        self._spread, self._is_wide = 0.0, False  # of the ratings in one lane, at most
        self.sums, self.weighted = np.zeros((2, *self.ratings.shape))

    def steps(self, orders: Orders) -> Iterator[None]:
        """Play (n_lanes, n) battles; pause after each.

        Ratings may come too far apart: a battle parts nobody by more than 2 K.
        """
        grown = 2.0 * orders.shape[1] * float(self._k.max())
        self._spread += grown
        if self._spread > WIDEST:
            self._spread = float(np.ptp(self.ratings)) + grown
        self._is_wide = self._spread > WIDEST
        yield from super().steps(orders)

    def _meet(self) -> None:
        winner, loser, gap = self._winner, self._loser, self._gap
        np.subtract(winner, loser, gap)
        if self._is_wide:
            np.clip(gap, -WIDEST, WIDEST, gap)
        step = self._expected(gap)
        if self._is_shared:
            np.subtract(step, self._rest, step)
        np.multiply(step, self._k, step)
        np.add(winner, step, winner)
        np.subtract(loser, step, loser)
