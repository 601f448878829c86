"""Who is better than whom, and how sure that is.

Within a component the difference of two ratings is held against its own standard error, which
takes the full covariance: intervals may overlap where the difference is sure. Between components
their order decides, and nobody can say how surely.
"""

from math import erf, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.component_rating import ROUNDING
from projections.ratings import BradleyTerryRatings
from projections.resamples import Floats

_DECIMALS: Final = 6  # of Elo points: what differs by less is equal but for rounding


class Ranks(NamedTuple):
    """Ranks, (n,) each, among those with whom an entrant can be compared.

    best: its rank, 1 + how many are surely better; worst: how many are not surely worse, itself
    included; among: how many there are, itself included.
    """

    best: NDArray[np.intp]
    worst: NDArray[np.intp]
    among: NDArray[np.intp]


class _Differences(NamedTuple):
    """Rating of i less that of j, and its standard error, (n, n).

    NaN between components; an error is NaN where no two units differ about i and j, too.
    """

    points: Floats
    error: Floats


def ranks(ratings: BradleyTerryRatings) -> Ranks:
    """Rank entrants.

    Surely better is who is better by more than z standard errors of the difference, z as for the
    level of the ratings' intervals; and who is of a component above the other's.
    """
    label, above = ratings.components.label, ratings.components.above
    points, error = _differences(ratings)
    z = NormalDist().inv_cdf((1 + ratings.parameters.level) / 2)
    ordered = above[label[:, None], label]
    comparable = (label[:, None] == label) | ordered | ordered.T
    better = (points > z * error) | ordered
    among = comparable.sum(axis=1)
    return Ranks(best=1 + better.sum(axis=0), worst=among - better.sum(axis=1), among=among)


def p_better(ratings: BradleyTerryRatings) -> Floats:
    """Return how likely each entrant is better than each other, (n, n), as far as is known.

    The normal distribution at the difference over its standard error; NaN between components,
    without intervals, where no two units differ about both, and of an entrant and itself.
    """
    points, error = _differences(ratings)
    normal = [(1 + erf(each / sqrt(2))) / 2 for each in (points / error).flat]
    return np.reshape(normal, points.shape)


def _differences(ratings: BradleyTerryRatings) -> _Differences:
    points = np.round(ratings.rating[:, None] - ratings.rating, _DECIMALS)
    variance = ratings.covariance.diagonal()
    squared = variance[:, None] + variance - (ratings.covariance + ratings.covariance.T)
    error = np.sqrt(np.maximum(squared, 0.0))
    return _Differences(points, np.where(error < ROUNDING, np.nan, error))
