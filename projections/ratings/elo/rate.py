"""Elo averaged over random orders of the battles (Elo 1978; orders as in Boubdir et al. 2023).

Elo depends on the order of battles, which a bank of prompts does not have: each permutation is one
season, and the rating is the mean over seasons. The spread over permutations measures the
dependence on order only. The uncertainty of the rating comes from prompts; `uncertainty.py` has it.

The end of a long season does not depend on its beginning: of very many battles that is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import EloParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.elo.season import LN_10, Numbers, outcomes_of, play_all

PER_POINT: Final = LN_10 / 400.0  # of the natural logarithm of the odds, for each Elo point
NO_TIME: Final = 1e-9  # of a round: a rate of decay too small to tell from none
_FORGOTTEN: Final = 30.0  # what is left of a change after so many times 1 / its rate: e^-30
_MOST_K: Final = 32.0  # above it ratings scatter so far that changes decay later than is computed
_SHARE: Final = 50  # NumPy draws 1 / 50 and less of more than 10,000 in another way
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
    most_replayed: int = MOST_RESAMPLED,
) -> Mapping[float, EloRatings]:
    """Compute Elo ratings under each K, over all permutations.

    The permutations come from one seed, so every K sees the same orders. Of very many battles,
    those at the beginning of an order are left out that its end does not depend on.

    Args:
        battles: The battles.
        parameters: Initial rating, number of permutations, seed.
        ks: The K factors.
        most_replayed: The number of battles above which not all are played.

    Returns:
        The ratings by K.

    Raises:
        CannotRate: A battle has a weight, and Elo cannot use weights.
    """
    (outcomes, numbers), is_replayed = outcomes_of(battles), len(battles) <= most_replayed
    lengths = {k: len(battles) if is_replayed else n_remembered(battles, k) for k in ks}
    rated: dict[float, EloRatings] = {}
    for length in {*lengths.values()}:
        ks_of_length = [k for k in ks if lengths[k] == length]
        orders = (
            _permutations(numbers, parameters)
            if is_replayed
            else _ends(numbers, length, parameters)
        )
        gained = play_all(outcomes, orders, length, ks=ks_of_length)
        points = parameters.initial_rating + gained
        for n, k in enumerate(ks_of_length):
            traces = np.ascontiguousarray(points[:, :, n])
            rated[k] = EloRatings(battles.entrants, len(battles), traces)
    return {k: rated[k] for k in ks}


def _permutations(numbers: Numbers, parameters: EloParameters) -> Iterator[Numbers]:
    """Return permutations of all battles, each drawn when it is wanted."""
    rng = np.random.default_rng(parameters.seed)
    return (rng.permutation(numbers) for _ in range(parameters.permutations))


def _ends(numbers: Numbers, length: int, parameters: EloParameters) -> Iterator[Numbers]:
    """Return the ends of permutations of very many battles, not those of `_permutations`.

    Each permutation has a generator of its own, and is drawn from its last place down, as NumPy
    draws more than a fiftieth of very many: so the same battles are its last ones, however much of
    it is drawn.
    """
    n_drawn = max(length, len(numbers) // _SHARE + 1)

    def end(seed: np.random.SeedSequence) -> Numbers:
        order = np.random.default_rng(seed).choice(numbers, n_drawn, replace=False)
        return order[n_drawn - length :].copy()  # without what was drawn in vain

    return map(end, np.random.SeedSequence(parameters.seed).spawn(parameters.permutations))


def n_remembered(battles: Battles, k: float) -> int:
    """Return how many of the last battles of an order decide where ratings end, to 1e-6 points.

    A change d of all ratings decays as d' = -K L d, in rounds. L is taken at the shares that were
    won, each a battle nearer to 1/2, where ratings settle; on their way they lie closer, and L is
    larger. Under a large K they scatter, and L is smaller: so none is taken to forget faster than
    under 32.
    """
    met = battles.a * len(battles.entrants) + battles.b
    n_met = np.bincount(met)
    share = (np.bincount(met, battles.score) + 0.5) / (n_met + 1.0)
    slope = PER_POINT * share * (1.0 - share)
    rate = min(k, _MOST_K) * np.linalg.eigvalsh(information(battles, slope[met]))
    slowest = rate[rate > NO_TIME].min(initial=np.inf)
    return int(min(1.0, _FORGOTTEN / slowest) * len(battles))


def information(battles: Battles, slope: Floats) -> NDArray[np.float64]:
    """Return L, (n_entrants, n_entrants)."""
    n = len(battles.entrants)
    pairs = np.bincount(battles.a * n + battles.b, slope, minlength=n * n).reshape(n, n)
    both = pairs + pairs.T
    return np.asarray(np.diag(both.sum(axis=1)) - both)
