"""Play seasons of Elo: all battles in some order, many orders side by side.

A season is one pass over the battles. Each lane plays its own order, and each K its own ratings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles, CannotRate
from projections.intervals import Floats

LOG2_10: Final = 3.321928094887362
_LN_2: Final = 0.6931471805599453

# What stands in the fraction below from 1 to 9, so scaled that f can stand for x.
_TERMS: Final = tuple(np.array(odd * 2.0 / _LN_2) for odd in (1, 3, 5, 7))
_LAST: Final = np.array(_LN_2 / 18.0)

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


POINTS: Final = 400.0 / LOG2_10  # of Elo, for each doubling of the odds

_AT_ONCE: Final = 32  # battles whose places are looked up together: few enough for the cache

Orders: TypeAlias = NDArray[np.unsignedinteger]
Places: TypeAlias = NDArray[np.intp]


def play_seasons(
    played: SeasonBattles, orders: Orders, *, ks: Sequence[float], n_last: int = 1
) -> Floats:
    """Play a season in each lane, under each K: (n_lanes, n_entrants, n_ks) Elo points gained.

    The expected score of a is E = 1 / (1 + 10^((R_b - R_a) / 400)); after a battle in which it
    scored S, R_a += K (S - E) and R_b -= K (S - E) (Elo 1978). Orders are (n_lanes, n_steps)
    numbers of battles; the rating is the mean over the last n_last battles.
    """
    n_before = max(0, orders.shape[1] - n_last)
    lanes = _Lanes(played, len(orders), ks)
    for chosen in _chunks(orders[:, :n_before]):
        lanes.play(chosen)
    for chosen in _chunks(orders[:, n_before:]):
        lanes.play(chosen, is_counted=True)
    return np.swapaxes(lanes.sums[: played.n_entrants], 0, 1) * (POINTS / n_last)


def _chunks(orders: Orders) -> Iterator[Places]:
    """Yield (n, n_lanes) numbers of battles, to be played row by row."""
    for start in range(0, orders.shape[1], _AT_ONCE):
        yield orders[:, start : start + _AT_ONCE].T.astype(np.intp)


class _Lanes:
    """The ratings of all lanes, in doublings of the odds, and buffers to update them.

    The ratings of an entrant in a lane, one for each K, are moved as one opaque item, which NumPy
    does faster than rows of numbers. An entrant's lanes lie side by side: so the few that play most
    stay in the cache.
    """

    def __init__(self, played: SeasonBattles, n_lanes: int, ks: Sequence[float]) -> None:
        n_rows, item = played.n_entrants + 2, np.dtype((np.void, 8 * len(ks)))
        self._played = played
        self._n_lanes = n_lanes
        self._ratings = np.zeros((n_rows, n_lanes, len(ks)))
        self._rows = self._ratings.reshape(-1).view(item)
        # NumPy assigns faster by index where it knows the item's size, as of one or two numbers.
        self._put = self._rows.__setitem__ if len(ks) <= 2 else self._rows.put  # noqa: PLR2004  # above
        self._met = np.empty(2 * n_lanes * len(ks))
        self._met_rows = self._met.view(item)
        self._rest = np.empty(n_lanes * len(ks))
        self._rest_rows = self._rest.view(item)
        self._rests = np.repeat(played.rests, len(ks)).view(item)
        self._gap = np.empty(n_lanes * len(ks))
        self._expected = ExpectedScore(n_lanes * len(ks))
        self._k = np.tile(np.array(ks) / POINTS, n_lanes)
        self._spread = 0.0  # of the ratings in one lane, at most
        self.sums = np.zeros_like(self._ratings)

    def play(self, chosen: Places, *, is_counted: bool = False) -> None:
        """Play (n, n_lanes) battles; if counted, add up the ratings after each."""
        gap, k, expected = self._gap, self._k, self._expected
        winner, loser = np.split(self._met, 2)
        is_shared, is_wide = len(self._rests) > 1, self._may_be_wide(len(chosen))
        for battles, met in zip(chosen, self._places(chosen), strict=True):
            self._rows.take(met, 0, self._met_rows, "clip")
            np.subtract(winner, loser, gap)
            if is_wide:
                np.clip(gap, -WIDEST, WIDEST, gap)
            step = expected(gap)
            if is_shared:
                self._rests.take(self._played.rest.take(battles), 0, self._rest_rows, "clip")
                np.subtract(step, self._rest, step)
            np.multiply(step, k, step)
            np.add(winner, step, winner)
            np.subtract(loser, step, loser)
            self._put(met, self._met_rows)
            if is_counted:
                np.add(self.sums, self._ratings, self.sums)

    def _places(self, chosen: Places) -> Places:
        """Return (n, 2 n_lanes) rows of the entrants that play, winners before losers."""
        places = np.empty((len(chosen), 2, self._n_lanes), dtype=np.intp)
        for side, entrant in enumerate((self._played.winner, self._played.loser)):
            np.multiply(entrant.take(chosen), self._n_lanes, places[:, side], dtype=np.intp)
        places += np.arange(self._n_lanes)
        return places.reshape(len(chosen), -1)

    def _may_be_wide(self, n: int) -> bool:
        """Say whether ratings may come too far apart: no battle parts anybody by more than 2 K."""
        grown = 2.0 * n * float(self._k.max())
        self._spread += grown
        if self._spread > WIDEST:
            self._spread = float(np.ptp(self._ratings)) + grown
        return self._spread > WIDEST
