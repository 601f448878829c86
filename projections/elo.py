"""Elo averaged over random orders of the games (Elo 1978; orders as in Boubdir et al. 2023).

Elo depends on the order of play, which a bank of prompts does not have: each permutation is one
imagined season, and the mean over seasons is the rating. The spread over permutations measures
that dependence on order only. It says nothing of how sure the rating is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from ledger.identity import EntrantId


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
        expected = 1.0 / (1.0 + 10.0 ** ((rating_b - rating_a) / 400.0))
        step = k * (score[played] - expected)
        ratings[lanes, a[played]] = rating_a + step
        ratings[lanes, b[played]] = rating_b - step
    return EloRatings(entrants, len(games), ratings)


def _permutations(n_games: int, parameters: EloParameters) -> NDArray[np.intp]:
    rng = np.random.default_rng(parameters.seed)
    orders = [rng.permutation(n_games) for _ in range(parameters.permutations)]
    return np.array(orders, dtype=np.intp).reshape(parameters.permutations, n_games).T
