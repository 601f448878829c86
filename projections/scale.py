"""The Elo scale: what ratings are counted from, and how many points strengths make."""

from typing import NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.component_rating import ELO, MEAN_RATING
from projections.pair_model import Floats
from projections.ratings import BradleyTerryRatings


class Scale(NamedTuple):
    """Ratings are zero + points @ strengths.

    zero: (n,) the rating of what a component hangs from, its mean or the anchor; NaN where there
    is no rating. points: (n, n) whose rows take differences of strengths within a component.
    """

    zero: Floats
    points: Floats


def scale_of(ratings: BradleyTerryRatings) -> Scale:
    """Return the scale that ratings are on."""
    label, n = ratings.components.label, len(ratings.entrants)
    together = label[:, None] == label
    zero, hung_from = np.full(n, MEAN_RATING), together / together.sum(axis=1, keepdims=True)
    if ratings.parameters.anchor is not None:
        anchor = ratings.entrants.index(ratings.parameters.anchor)
        zero[together[anchor]] = ratings.parameters.anchor_rating
        hung_from[together[anchor]] = np.arange(n) == anchor
    zero[np.isnan(ratings.rating)] = np.nan
    return Scale(zero, ELO * (np.eye(n) - hung_from))


def precision_of(parameters: BradleyTerryParameters) -> float:
    """Return 1 / variance of the prior of strengths that parameters state; 0: they state none."""
    return 0.0 if parameters.prior_sd is None else (ELO / parameters.prior_sd) ** 2
