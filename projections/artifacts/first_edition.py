"""Elo as runs of the first edition calculated it: their published bytes must be found again.

`projections.elo` differs from it in the last bits, and is several times as fast. Nothing new is
rated by this.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.battles import Battles
from projections.elo import EloRatings

_LOG2_10: Final = 3.321928094887362
_LN_2: Final = 0.6931471805599453


def rate(
    battles: Battles, parameters: EloParameters, ks: Sequence[float]
) -> Mapping[float, EloRatings]:
    """Rate by Elo under each K; see `projections.elo.rate`."""
    orders = _permutations(len(battles), parameters)
    return {
        k: EloRatings(
            battles.entrants, len(battles), _traces(battles, orders, parameters.initial_rating, k)
        )
        for k in ks
    }


def _traces(
    battles: Battles, orders: NDArray[np.intp], initial_rating: float, k: float
) -> NDArray[np.float64]:
    """Return (n_permutations, n_entrants) final ratings."""
    a, b, score = battles.a, battles.b, battles.score
    ratings = np.full((orders.shape[1], len(battles.entrants)), initial_rating)
    lanes = np.arange(orders.shape[1])
    for played in orders:  # (n_permutations,): in each lane another battle
        rating_a, rating_b = ratings[lanes, a[played]], ratings[lanes, b[played]]
        expected = 1.0 / (1.0 + _power_of_ten((rating_b - rating_a) / 400.0))
        step = k * (score[played] - expected)
        ratings[lanes, a[played]] = rating_a + step
        ratings[lanes, b[played]] = rating_b - step
    return ratings


def _power_of_ten(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 10^x to 1e-15, the same bits on every processor.

    10^x = 2^n e^f with n whole and |f| <= ln(2) / 2, and e^f by its Taylor series to the 15th
    term, in Horner's scheme: exactly rounded operations only.
    """
    exponent = x * _LOG2_10
    n = np.rint(exponent)
    f = (exponent - n) * _LN_2
    series = np.ones_like(f)
    for term in range(15, 0, -1):
        series = 1.0 + series * f / term
    return np.ldexp(series, n.astype(np.intc))


def _permutations(n_battles: int, parameters: EloParameters) -> NDArray[np.intp]:
    """Return (n_battles, n_permutations) orders of play."""
    rng = np.random.default_rng(parameters.seed)
    orders = [rng.permutation(n_battles) for _ in range(parameters.permutations)]
    return np.array(orders, dtype=np.intp).reshape(parameters.permutations, n_battles).T
