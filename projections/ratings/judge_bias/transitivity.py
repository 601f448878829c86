"""Whether one number for each entrant explains how pairs of entrants came out.

Pearson's chi-square compares what each pair's first entrant took with what Bradley-Terry ratings
expect. Battles of a prompt are not independent, so its distribution is that of a score bootstrap:
each prompt's contribution to the differences, less what the fit takes up, is multiplied by 1 or -1
at random (Kline and Santos 2012).
"""

from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.battles.soft_scores import sigma
from projections.intervals import FEWEST_CLUSTERS, Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.evidence import single_battles
from projections.ratings.bradley_terry.rate import rate_points

_DRAWS: Final = 1999
_SEED: Final = 20260427
_ROUNDING: Final = 1e-9  # draws that equal what was found differ in the last digits, by machine


class Transitivity(NamedTuple):
    """The test; degrees: how many pairs more than ratings that are free; p: of the chi-square."""

    chi_square: float
    degrees: int
    p: float
    n_pairs: int  # of entrants


def transitivity(battles: Battles) -> Transitivity | None:
    """Test whether ratings explain the battles of comparable entrants.

    Returns:
        None if there are not more pairs than ratings, or too few prompts (FEWEST_CLUSTERS).

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    ratings = rate_points(battles, BradleyTerryParameters())
    label = ratings.components.label
    units = single_battles(battles, label[battles.a] == label[battles.b])
    n_prompts = len(units.count)
    n, strengths = units.n_entrants, ratings.rating / ELO
    met, pair = np.unique(
        np.minimum(units.a, units.b) * n + np.maximum(units.a, units.b), return_inverse=True
    )
    net = np.eye(n)[met // n] - np.eye(n)[met % n]  # (n_pairs, n): 1 at the first, -1 at the other
    degrees = len(net) - (int(np.linalg.matrix_rank(net)) if n_prompts else 0)
    if degrees < 1 or n_prompts < FEWEST_CLUSTERS:
        return None
    log_odds = strengths[units.a] - strengths[units.b]
    took = units.weight * (units.score - sigma(log_odds))  # beyond expectation
    surplus = np.zeros((n_prompts, len(met)))  # of the first of each pair
    np.add.at(surplus, (units.unit, pair), np.where(units.a < units.b, took, -took))
    spread = units.weight * sigma(log_odds) * sigma(-log_odds)
    variance = np.bincount(pair, spread, minlength=len(met)).astype(np.float64)
    found = float((surplus.sum(axis=0) ** 2 / variance).sum())
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), (_DRAWS, n_prompts))
    drawn = ((signs @ _unexplained(surplus, variance, net)) ** 2 / variance).sum(axis=1)
    n_as_far = int((drawn >= found * (1 - _ROUNDING)).sum())
    return Transitivity(found, degrees, (1 + n_as_far) / (1 + _DRAWS), len(net))


def _unexplained(surplus: Floats, variance: Floats, net: Floats) -> Floats:
    """Return the surplus less what the fit takes up of each prompt's, (n_prompts, n_pairs).

    variance: (n_pairs,) of the sum over independent battles.
    """
    weighted = variance[:, None] * net
    taken_up = np.linalg.pinv(net.T @ weighted) @ net.T
    return np.asarray(surplus - surplus @ (weighted @ taken_up).T)
