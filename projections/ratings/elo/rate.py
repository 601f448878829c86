"""Elo averaged over random orders of the battles (Elo 1978; orders as in Boubdir et al. 2023).

Elo depends on the order of battles, which a bank of prompts does not have: each permutation is one
season, and the rating is the mean over seasons. The spread over permutations measures the
dependence on order only. The uncertainty of the rating comes from prompts; `uncertainty.py` has it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battles
from projections.ratings.elo.influence import n_remembered
from projections.ratings.elo.lanes import Orders, SeasonBattles, season_battles
from projections.ratings.elo.odds import final_gains

MOST_BYTES: Final = 2**28
MOST_RESAMPLED: Final = 100_000
"""Battles above which not all are played, nor prompts resampled: that takes a minute or more."""


@dataclass(frozen=True)
class EloRatings:
    """Elo ratings of the entrants that have battles, in order of id."""

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


def prompts_met(battles: Battles) -> NDArray[np.intp]:
    """Count the prompts on which each entrant met another, (n_entrants,)."""
    has_met_on = np.zeros((len(battles.entrants), battles.cluster.max(initial=-1) + 1), np.bool_)
    has_met_on[battles.a, battles.cluster] = has_met_on[battles.b, battles.cluster] = True
    return np.asarray(has_met_on.sum(axis=1))


def rate(
    battles: Battles,
    parameters: EloParameters,
    ks: Sequence[float],
    *,
    most_bytes: int = MOST_BYTES,
    most_replayed: int = MOST_RESAMPLED,
) -> Mapping[float, EloRatings]:
    """Compute Elo ratings under each K, over all permutations.

    The permutations come from one generator seeded once, so every K sees the same orders. Of very
    many battles, those at the beginning of an order are left out that its end does not depend on.

    Args:
        battles: The battles.
        parameters: Initial rating, number of permutations, seed.
        ks: The K factors.
        most_bytes: Of the orders that are held at once.
        most_replayed: The number of battles above which not all are played.

    Returns:
        The ratings by K.

    Raises:
        CannotRate: A battle has a weight, and Elo cannot use weights.
    """
    played = season_battles(battles)
    is_long = len(battles) > most_replayed
    beginning = len(battles) - n_remembered(battles, min(ks)) if is_long else 0
    some_orders = _orders(played, beginning, parameters, most_bytes)
    gained = np.concatenate([final_gains(played, orders, ks=ks) for orders in some_orders])
    points = parameters.initial_rating + gained
    return {
        k: EloRatings(battles.entrants, len(battles), np.ascontiguousarray(points[:, :, n]))
        for n, k in enumerate(ks)
    }


def _orders(
    played: SeasonBattles, beginning: int, parameters: EloParameters, most_bytes: int
) -> Iterator[Orders]:
    """Yield permutations of all battles without their beginnings, some at a time, one a row."""
    rng = np.random.default_rng(parameters.seed)
    battles = played.codes[:-1].astype(np.intp)  # which NumPy shuffles faster than short numbers
    length = len(battles) - beginning
    n_at_once = max(1, most_bytes // max(1, length * played.codes.itemsize))
    for start in range(0, parameters.permutations, n_at_once):
        n = min(n_at_once, parameters.permutations - start)
        orders = np.empty((n, length), played.codes.dtype)
        for order in orders:
            order[:] = rng.permutation(battles)[beginning:]
        yield orders
