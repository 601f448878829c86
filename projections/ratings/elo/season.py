"""Elo's fold: play battles in many orders side by side, under several K.

All operations are exactly rounded ones (+, -, *, / and square roots), so that every processor finds
the same bits, and a run can be replayed on another. NumPy's own powers differ in the last bit.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import TIE, Battles, CannotRate
from projections.intervals import Floats

Numbers: TypeAlias = NDArray[np.unsignedinteger]
"""Numbers of battles, (n,)."""
Orders: TypeAlias = NDArray[np.unsignedinteger]
"""Numbers of battles in the order of play, (n_orders, n_steps)."""

LN_10: Final = 2.302585092994046
_LN_2: Final = 0.6931471805599453
_HALVINGS: Final = 10
_PARTS: Final = 2**_HALVINGS  # of a doubling of the odds: the steps of the table of powers
_REACH: Final = 64  # doublings in the table: further apart, a score is expected to 19 digits
_LOG_PART: Final = _LN_2 / _PARTS
_POINTS: Final = 400.0 * _LOG_PART / LN_10  # of Elo, for each part
_AT_ONCE: Final = 16  # battles that are looked up together: few enough for the cache


def numbered(battles: Battles) -> Numbers:
    """Return the numbers of battles, (n,); one more, n, stands for none: who waits plays it.

    Raises:
        CannotRate: A battle has a weight, and Elo cannot use weights.
    """
    if (battles.weight != 1.0).any():
        remedy = "use Bradley-Terry, or remove the weights"
        raise CannotRate("Elo cannot use weights, and these battles have some", remedy)
    return np.arange(len(battles), dtype=np.min_scalar_type(len(battles)))


def play(
    battles: Battles, orders: Orders, *, ks: Sequence[float], last: Sequence[float] = (1.0,)
) -> Floats:
    """Play every order under every K: (n_orders, n_entrants, n_ks) Elo points gained.

    The expected score of a is E = 1 / (1 + 10^((R_b - R_a) / 400)); after a battle in which it
    scored S, R_a += K (S - E) and R_b -= K (S - E) (Elo 1978). The rating is the sum over the
    last battles of what it was after each, times the battle's weight in `last`.
    """
    n_orders, n_steps = orders.shape
    shape = len(battles.entrants) + 2, n_orders, len(ks)  # the last two play when others wait
    ratings = np.zeros((shape[0] * n_orders, len(ks)))  # in parts of a doubling of the odds
    sums, k = np.zeros_like(ratings), np.tile(np.array(ks) / _POINTS, (n_orders, 1))
    met, odds = np.empty((2 * n_orders, len(ks))), _Odds(k.shape)
    winner, loser = np.split(met, 2)
    is_shared = bool(((battles.score > 0) & (battles.score < 1)).any())
    for step, (rows, rest) in enumerate(_steps(battles, orders), start=len(last) - n_steps):
        ratings.take(rows, axis=0, out=met, mode="clip")
        gained = odds.plus_one(winner, loser)
        np.divide(k, gained, gained)
        if is_shared:
            gained -= k * rest[:, None]
        np.add(winner, gained, winner)
        np.subtract(loser, gained, loser)
        for of_all, of_met in zip(ratings.T, met.T, strict=True):  # faster than rows
            of_all[rows] = of_met
        if step >= 0:
            sums += last[step] * ratings
    return np.ascontiguousarray(np.swapaxes(sums.reshape(shape)[:-2], 0, 1)) * _POINTS


def _steps(battles: Battles, orders: Orders) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield each step: the rows of winners' and losers' ratings, and what losers scored.

    The winner is who has at least half of the score. There are 2 n_orders rows of ratings, of all
    winners, then of all losers; entrants have n_orders rows each. The dummy battle has no score.
    """
    n, n_orders = len(battles.entrants), len(orders)
    a_won = battles.score >= TIE
    winner = np.append(np.where(a_won, battles.a, battles.b), n) * n_orders
    loser = np.append(np.where(a_won, battles.b, battles.a), n + 1) * n_orders
    rest = np.append(np.minimum(battles.score, 1.0 - battles.score), 0.0)
    order = np.arange(n_orders)
    for start in range(0, orders.shape[1], _AT_ONCE):
        battle = np.ascontiguousarray(orders[:, start : start + _AT_ONCE].T, np.intp)
        rows = [side.take(battle) + order for side in (winner, loser)]
        yield from zip(np.concatenate(rows, axis=1), rest.take(battle), strict=True)


def _powers_of_2() -> Floats:
    """Return 2^(n / _PARTS) for n from -_REACH _PARTS up, from square roots of 2 and products."""
    powers, root = np.ones(1), 2.0
    for _ in range(_HALVINGS):
        root = sqrt(root)
        powers = np.column_stack((powers, powers * root)).ravel()
    return np.asarray(np.ldexp(powers, np.arange(-_REACH, _REACH)[:, None]).ravel())


_POWERS: Final = _powers_of_2()
_LINEAR, _SQUARE, _CUBIC = map(np.array, (_LOG_PART, _LOG_PART**2 / 2, _LOG_PART**3 / 6))
_ONE, _MIDDLE = map(np.array, (1.0, float(_REACH * _PARTS)))  # NumPy is slower with Python's floats


class _Odds:
    """Buffers to compute odds, 10^((R_winner - R_loser) / 400)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._gap, self._whole = np.empty(shape), np.empty(shape)
        self._power, self._place = np.empty(shape), np.empty(shape, np.intp)

    def plus_one(self, winner: Floats, loser: Floats) -> Floats:
        """Return 1 + 2^(gap / _PARTS) to 1e-15, the gap in parts; the next call overwrites it.

        The power is one from the table times e^x, x being what is left of the gap, at most half a
        part: four terms of the series are enough.
        """
        x, whole, power = self._gap, self._whole, self._power
        np.subtract(winner, loser, x)
        np.rint(x, whole)
        np.subtract(x, whole, x)
        np.add(whole, _MIDDLE, whole)
        np.copyto(self._place, whole, casting="unsafe")
        np.multiply(x, _CUBIC, power)
        for term in (_SQUARE, _LINEAR):
            np.add(power, term, power)
            np.multiply(power, x, power)
        np.add(power, _ONE, power)
        _POWERS.take(self._place, out=whole, mode="clip")
        np.multiply(power, whole, power)
        np.add(power, _ONE, power)
        return power
