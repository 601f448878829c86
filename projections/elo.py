"""Elo averaged over random orders of the games (Elo 1978; orders as in Boubdir et al. 2023).

Elo depends on the order of play, which a bank of prompts does not have: each permutation is one
imagined season, and the mean over seasons is the rating. The spread over permutations measures
that dependence on order only. It says nothing of how sure the rating is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from ledger.identity import EntrantId

_LOG2_10: Final = math.log2(10.0)
_LN_2: Final = math.log(2.0)


class Game(NamedTuple):
    """Two entrants met; score is what a took: 1 won, 0 lost, 1/2 tied."""

    a: EntrantId
    b: EntrantId
    score: float


@dataclass(frozen=True)
class EloRatings:
    """Ratings of the entrants that played, in order of id."""

    entrants: tuple[EntrantId, ...]
    n_games: int
    traces: NDArray[np.float64]  # (n_permutations, n_entrants) final ratings

    def mean(self) -> NDArray[np.float64]:
        """Return the rating of each entrant, (n_entrants,)."""
        return np.asarray(self.traces.mean(axis=0))

    def order_sem(self) -> NDArray[np.float64]:
        """Return the standard error of the mean over orders, (n_entrants,)."""
        n_permutations = len(self.traces)
        if n_permutations == 1:
            return np.zeros(len(self.entrants))
        return np.asarray(self.traces.std(axis=0, ddof=1) / np.sqrt(n_permutations))


def rate(games: Sequence[Game], parameters: EloParameters, *, k: float) -> EloRatings:
    """Rate by Elo, all permutations side by side.

    The expected score of a is E = 1 / (1 + 10^((R_b - R_a) / 400)); after a game
    R_a += K (S - E) and R_b -= K (S - E): the sum of ratings is conserved. The permutations are
    those of one generator seeded once, so every K sees the same orders.

    Args:
        games: What was played; a tie among them counts as half a win each.
        parameters: Initial rating, number of permutations, seed.
        k: The largest step of one game.
    """
    entrants = tuple(sorted({entrant for game in games for entrant in (game.a, game.b)}))
    index = {entrant: i for i, entrant in enumerate(entrants)}
    a = np.array([index[game.a] for game in games], dtype=np.intp)  # (n_games,)
    b = np.array([index[game.b] for game in games], dtype=np.intp)
    score = np.array([game.score for game in games], dtype=np.float64)
    orders = _permutations(len(games), parameters)  # (n_games, n_permutations)
    ratings = np.full((parameters.permutations, len(entrants)), parameters.initial_rating)
    lanes = np.arange(parameters.permutations)
    for played in orders:  # (n_permutations,): in each lane another game
        rating_a, rating_b = ratings[lanes, a[played]], ratings[lanes, b[played]]
        expected = 1.0 / (1.0 + _power_of_ten((rating_b - rating_a) / 400.0))
        step = k * (score[played] - expected)
        ratings[lanes, a[played]] = rating_a + step
        ratings[lanes, b[played]] = rating_b - step
    return EloRatings(entrants, len(games), ratings)


def _power_of_ten(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 10^x to 1e-15, the same bits on every processor.

    NumPy's own power takes another path where the processor has wider registers, and differs in
    the last bit; a replay elsewhere would then look like a forgery. Here are exactly rounded
    operations only: 10^x = 2^n e^f with n whole and |f| <= ln(2) / 2, and e^f by its Taylor
    series to the 15th term, in Horner's scheme.
    """
    exponent = x * _LOG2_10
    n = np.rint(exponent)
    f = (exponent - n) * _LN_2
    series = np.ones_like(f)
    for term in range(15, 0, -1):
        series = 1.0 + series * f / term
    return np.ldexp(series, n.astype(np.intc))


def _permutations(n_games: int, parameters: EloParameters) -> NDArray[np.intp]:
    rng = np.random.default_rng(parameters.seed)
    orders = [rng.permutation(n_games) for _ in range(parameters.permutations)]
    return np.array(orders, dtype=np.intp).reshape(parameters.permutations, n_games).T
