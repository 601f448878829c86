"""By how much each unit of evidence moved an estimate, to first order.

A unit's derivatives of the log-likelihood, times the inverse of the information, are what it
moved the parameters by. These influences, squared and added up, are the sandwich covariance; and
as they can be added for estimates that share their units, that of estimates taken together.
"""

import numpy as np
from numpy.typing import NDArray

from projections.battles import Battles
from projections.pair_model import Scores
from projections.resamples import Floats
from projections.units import Units


def one_by_one(battles: Battles, chosen: NDArray[np.bool_]) -> Units:
    """Return some battles, none put together with those that are alike; units are their prompts.

    Units are numbered in the order of the prompts' numbers.
    """
    prompts, unit = np.unique(battles.cluster[chosen], return_inverse=True)
    return Units(
        len(battles.entrants),
        a=battles.a[chosen],
        b=battles.b[chosen],
        score=battles.score[chosen],
        weight=battles.weight[chosen],
        unit=unit,
        count=np.ones_like(prompts, dtype=np.int64),
    )


def response_of(figures: Floats, information: Floats) -> Floats:
    """Return by how much figures move for each derivative of the log-likelihood, (m, k).

    Args:
        figures: (m, k) each a linear function of parameters.
        information: (k, k) at the fit.
    """
    return np.asarray(np.linalg.solve(information, figures.T).T, dtype=np.float64)


def influences(response: Floats, scores: Scores, units: Units) -> Floats:
    """Return what each unit moved each of m figures by, (n_units, m).

    Args:
        response: (m, k) of the figures.
        scores: The derivatives of each battle's.
        units: The battles.
    """
    n, n_units = units.n_entrants, len(units.count)
    moved = np.empty((n_units, len(response)))
    for figure, row in enumerate(response):
        of_battles = scores.strength * (row[units.a] - row[units.b]) + scores.others @ row[n:]
        moved[:, figure] = np.bincount(units.unit, of_battles, minlength=n_units)
    return moved


def covariance_of(moved: Floats) -> Floats:
    """Return the covariance of m figures, (m, m): C / (C - 1) times the sum over C units.

    Args:
        moved: (C, m) what each unit moved each by.

    Returns:
        NaN throughout for a single unit, which says nothing of how units vary.
    """
    n_units, m = moved.shape
    if n_units == 1:
        return np.full((m, m), np.nan)
    return np.asarray(moved.T @ moved * (n_units / (n_units - 1)))
