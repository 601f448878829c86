"""The Elo scale: what ratings are counted from, and how many points strengths make."""

from collections.abc import Sequence
from math import log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.resamples import Floats

MEAN_RATING: Final = 1000.0
ELO: Final = 400.0 / log(10.0)  # points per unit of strength: 400 points are odds of 10 : 1


class Scale(NamedTuple):
    """Elo points as a linear function of strengths.

    zero: (n,) the rating of what a component hangs from, its mean or the anchor; NaN where there
    is no rating. points: (n, n) whose rows take differences of strengths within a component.
    """

    zero: Floats
    points: Floats

    def rating(self, strengths: Floats) -> Floats:
        """Return the ratings of strengths, (n,) or (resamples, n)."""
        return self.zero + strengths @ self.points.T


def scale_of(
    entrants: Sequence[str], component: NDArray[np.intp], parameters: BradleyTerryParameters
) -> Scale:
    """Hang the component of the anchor, if it is there, from it, and any other from its mean.

    Args:
        entrants: (n,) names.
        component: (n,) the number of each one's component.
        parameters: What is the anchor, and where.
    """
    n, together = len(entrants), component[:, None] == component
    zero, hung_from = np.full(n, MEAN_RATING), together / together.sum(axis=1, keepdims=True)
    if parameters.anchor in entrants:
        anchor = entrants.index(parameters.anchor)
        zero[together[anchor]] = parameters.anchor_rating
        hung_from[together[anchor]] = np.arange(n) == anchor
    return Scale(zero, ELO * (np.eye(n) - hung_from))


def precision_of(parameters: BradleyTerryParameters) -> float:
    """Return 1 / variance of the prior of strengths that parameters state; 0: they state none."""
    return 0.0 if parameters.prior_sd is None else (ELO / parameters.prior_sd) ** 2
