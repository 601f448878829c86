"""Elo averaged over random orders of the battles (Elo 1978; orders as in Boubdir et al. 2023).

Elo depends on the order of play, which a bank of prompts does not have: each permutation is one
imagined season, and the mean over seasons is the rating. The spread over permutations measures
that dependence on order only. It says nothing of how sure the rating is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.battles import Battles
from projections.fixtures import fixtures
from projections.seasons import Orders, play

MOST_BYTES: Final = 2**28


@dataclass(frozen=True)
class EloRatings:
    """Ratings of the entrants that played, in order of id."""

    entrants: tuple[str, ...]
    n_battles: int
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


def rate(
    battles: Battles,
    parameters: EloParameters,
    ks: Sequence[float],
    *,
    most_bytes: int = MOST_BYTES,
) -> Mapping[float, EloRatings]:
    """Rate by Elo under each K, all permutations and all K side by side.

    The permutations are those of one generator seeded once, so every K sees the same orders.

    Args:
        battles: What was played.
        parameters: Initial rating, number of permutations, seed.
        ks: The largest steps of one battle.
        most_bytes: Of the orders that are held at once.

    Returns:
        The ratings by K.

    Raises:
        CannotRate: A battle has a weight, and Elo plays each once.
    """
    played = fixtures(battles)
    some_orders = _orders(len(battles), parameters, most_bytes)
    gained = np.concatenate([play(played, orders, ks=ks) for orders in some_orders])
    points = parameters.initial_rating + gained
    return {
        k: EloRatings(battles.entrants, len(battles), np.ascontiguousarray(points[:, :, n]))
        for n, k in enumerate(ks)
    }


def _orders(n_battles: int, parameters: EloParameters, most_bytes: int) -> Iterator[Orders]:
    """Yield permutations, (n, n_battles) of them at a time."""
    rng = np.random.default_rng(parameters.seed)
    small = np.min_scalar_type(n_battles)
    n_at_once = max(1, most_bytes // max(1, n_battles * small.itemsize))
    for start in range(0, parameters.permutations, n_at_once):
        orders = np.empty((min(n_at_once, parameters.permutations - start), n_battles), small)
        for order in orders:
            order[:] = rng.permutation(n_battles)
        yield orders
