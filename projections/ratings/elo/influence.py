"""Influence of prompts and of early battles on Elo ratings, which saves work for very many battles.

A rating's derivative by how often each prompt is drawn gives its standard error as the bootstrap
does, of which it is the limit for many prompts (the infinitesimal jackknife: Jaeckel 1972). And the
end of a long season does not depend on its beginning.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.elo.season import LN_10

_PER_POINT: Final = LN_10 / 400.0  # of the natural logarithm of the odds, for each Elo point
_NO_TIME: Final = 1e-9  # of a round: a rate of decay too small to tell from none
_FORGOTTEN: Final = 30.0  # what is left of a change after so many times 1 / its rate: e^-30
_MOST_K: Final = 32.0  # above it ratings scatter so far that changes decay later than is computed


def variances(battles: Battles, ratings: Floats, *, k: float, n_prompts: int) -> Floats:
    """Return the variance of the mean rating over prompts, (n_entrants,) squared Elo points.

    Let E be a battle's expected score, the mean over orders of play, and L d the sum over battles
    by which expected scores answer to a change d of ratings. A prompt drawn once more adds the sum
    h of S - E over its battles to a round, in which ratings follow d' = K (h - L d). So they move
    by u = L^-1 (1 - e^(-K L)) h in one round, and with n prompts

        standard error^2 = n / (n - 1) sum over prompts (u - mean u)^2

    Args:
        battles: The battles; a cluster is a prompt.
        ratings: (n_orders, n_entrants) Elo ratings at the end of each order, which scatter by
            about sqrt(K / 0.0115) points: so E is not the expected score at their mean.
        k: The K factor.
        n_prompts: How many were judged; those without a battle here move nothing.
    """
    _, prompt = np.unique(battles.cluster, return_inverse=True)
    expected, slope = _expected(battles, ratings)
    surprise = battles.score - expected
    rate, modes = np.linalg.eigh(k * _information(battles, slope))
    late = np.maximum(rate, _NO_TIME)
    gained = -np.expm1(-late) / late  # of what would be gained if nothing decayed
    responses = (modes * (k * gained)) @ modes.T  # of each rating to the sums of S - E of all
    moved = (
        np.bincount(prompt, surprise * (row[battles.a] - row[battles.b]), minlength=n_prompts)
        for row in responses
    )
    return np.array([n_prompts**2 / (n_prompts - 1) * each.var() for each in moved])


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
    slope = _PER_POINT * share * (1.0 - share)
    rate = min(k, _MOST_K) * np.linalg.eigvalsh(_information(battles, slope[met]))
    slowest = rate[rate > _NO_TIME].min(initial=np.inf)
    return int(min(1.0, _FORGOTTEN / slowest) * len(battles))


def _expected(battles: Battles, ratings: Floats) -> tuple[Floats, Floats]:
    """Return a's expected score and its derivative by the gap, (n,) each, the means over orders."""
    met, place = np.unique(battles.a * len(battles.entrants) + battles.b, return_inverse=True)
    a, b = np.divmod(met, len(battles.entrants))
    score, slope = np.zeros((2, len(met)))
    for order in ratings:
        of_a = 0.5 + 0.5 * np.tanh(0.5 * _PER_POINT * (order[a] - order[b]))
        score += of_a
        slope += _PER_POINT * of_a * (1.0 - of_a)
    return score[place] / len(ratings), slope[place] / len(ratings)


def _information(battles: Battles, slope: Floats) -> NDArray[np.float64]:
    """Return L, (n_entrants, n_entrants)."""
    n = len(battles.entrants)
    pairs = np.bincount(battles.a * n + battles.b, slope, minlength=n * n).reshape(n, n)
    both = pairs + pairs.T
    return np.asarray(np.diag(both.sum(axis=1)) - both)
