"""Overall ratings: the weighted mean of an entrant's ratings on dimensions.

The responses to a prompt are compared on every dimension, and the outcomes are correlated. So the
interval is the sandwich's over all dimensions together: the influences of a prompt on each rating
are added up over dimensions before they are squared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles, CannotRate
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import student_uncertainty
from projections.ratings.bradley_terry.evidence import Components, Support
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, PointRatings, Zero, rate


class WeightedDimension(NamedTuple):
    """A dimension, its share in the mean (shares sum to 1), its battles and ratings."""

    dimension: str
    share: float
    battles: Battles
    ratings: BradleyTerryRatings


def joint_covariance(parts: Sequence[WeightedDimension], members: NDArray[np.intp]) -> Floats:
    """Return the covariance of the overall ratings of m entrants, (m, m), in squared Elo points.

    Priors of dimensions are independent of each other.

    Args:
        parts: The dimensions; a prompt has one number on all.
        members: (m,) entrants that are in one component on each dimension.
    """
    n_prompts = max(int(part.battles.cluster.max()) for part in parts) + 1
    moved, of_priors = np.zeros((n_prompts, len(members))), np.zeros((len(members), len(members)))
    for part in parts:
        ratings = part.ratings
        peers = ratings.components.members(ratings.components.label[members[0]])
        likelihood, fit, inside = ratings.fitted(part.battles, peers)
        figures = np.zeros((len(members), len(fit)))
        figures[:, : len(peers)] = part.share * ratings.scale().points[np.ix_(members, peers)]
        robust = likelihood.sandwich(fit)
        moved[np.unique(part.battles.cluster[inside])] += robust.influences(figures)
        of_prior = (figures @ robust.inverse)[:, : len(peers)]
        of_priors += likelihood.precision * of_prior @ of_prior.T
    return np.asarray(moved.T @ moved + of_priors)


class Missing(NamedTuple):
    """A dimension on which an entrant has no rating, and why."""

    dimension: str
    reason: str | None


@dataclass(frozen=True)
class OverallRatings:
    """Overall ratings, and the dimensions they are made of.

    Attributes:
        parts: The dimensions that have a weight.
        ratings: Of entrants rated on all of these. Entrants are comparable if they are so on each;
            one is above another if it is above or in the same component on each, and above on some.
            There is no nu overall: NaN.
    """

    parts: tuple[WeightedDimension, ...]
    ratings: BradleyTerryRatings

    def zeros(self) -> tuple[Zero, ...]:
        """Return what each rating is measured from, (n,), on each dimension."""
        return tuple(zip(*(part.ratings.zeros() for part in self.parts), strict=True))

    def missing(self, entrant: str) -> tuple[Missing, ...]:
        """Return the dimensions on which an entrant has no rating, with the reason."""
        i = self.ratings.entrants.index(entrant)
        rows = [(part.dimension, part.ratings.rows()[i]) for part in self.parts]
        return tuple(
            Missing(dimension, row.reason if row.n_battles else "no battle")
            for dimension, row in rows
            if row.rating is None
        )


def rate_overall(
    battles: Battles,
    dimensions: Sequence[str],
    weights: Mapping[str, float],
    parameters: BradleyTerryParameters,
) -> OverallRatings:
    """Rate entrants on each dimension, and overall by the weighted mean.

    Args:
        battles: The battles on all dimensions; a prompt has one number on all.
        dimensions: (n,) the dimension of each battle.
        weights: Of every dimension, 0 or more; 0 leaves it out.
        parameters: Of the ratings on each dimension, with the sandwich interval.

    Raises:
        CannotRate: A dimension has no weight, or no battle; a weight is below 0; none is above; the
            parameters ask for resamples; or as in ratings on one dimension.
    """
    if parameters.interval != "sandwich":
        raise CannotRate("overall ratings need the sandwich interval", "choose it")
    if parameters.unit == "battles":
        battles = replace(battles, cluster=np.arange(len(battles)), prompts=())
    column = np.array(dimensions, dtype=np.str_)
    fought = {
        dimension: (share, battles.take(column == dimension))
        for dimension, share in _shares(weights, dimensions).items()
    }
    parts = tuple(
        WeightedDimension(dimension, share, those, rate(those, parameters))
        for dimension, (share, those) in fought.items()
    )
    return OverallRatings(parts, _overall(parts).widened(battles.widening))


def _shares(weights: Mapping[str, float], dimensions: Sequence[str]) -> dict[str, float]:
    """Divide weights by their sum, leaving out zeros."""
    fought = dict.fromkeys(dimensions)
    for dimension in fought:
        if dimension not in weights:
            raise CannotRate(f"dimension {dimension!r} has no weight", "give it one, or 0")
    for dimension, weight in weights.items():
        if not (weight >= 0 and isfinite(weight)):
            raise CannotRate(
                f"dimension {dimension!r} has the weight {weight}", "give it 0 or more"
            )
        if weight and dimension not in fought:
            raise CannotRate(f"dimension {dimension!r} has no battle", "leave it out")
    total = fsum(weights.values())
    if not total:
        raise CannotRate("no dimension has a weight above 0", "give one of them a weight")
    return {dimension: weight / total for dimension, weight in weights.items() if weight}


def _overall(parts: Sequence[WeightedDimension]) -> BradleyTerryRatings:
    first = parts[0].ratings
    components = _product([part.ratings.components for part in parts])
    rating = np.sum([part.share * part.ratings.rating for part in parts], axis=0)
    covariance = np.full((len(rating), len(rating)), np.nan)
    for members in components:
        if not np.isnan(rating[members[0]]):
            covariance[np.ix_(members, members)] = joint_covariance(parts, members)
    freedom = np.min([part.ratings.freedom for part in parts], axis=0)
    support = Support(
        np.min([part.ratings.support.n_clusters for part in parts], axis=0),
        weight=np.mean([part.ratings.support.weight for part in parts], axis=0),
    )
    uncertainty = student_uncertainty(
        first.entrants, rating, covariance, freedom, support, first.parameters
    )
    nu = np.full(len(components), np.nan)
    points = PointRatings(first.parameters, first.entrants, components, rating, support, nu)
    n_battles = np.sum([part.ratings.n_battles for part in parts], axis=0)
    return points.with_uncertainty(uncertainty, n_battles)


def _product(several: Sequence[Components]) -> Components:
    """Intersect components; above is above in some, in the same component in the others."""
    labels, label = np.unique(
        [components.label for components in several], axis=1, return_inverse=True
    )
    same_or_above = np.ones((labels.shape[1], labels.shape[1]), dtype=np.bool_)
    for each, row in zip(several, labels, strict=True):
        same_or_above &= each.above[np.ix_(row, row)] | (row[:, None] == row)
    np.fill_diagonal(same_or_above, val=False)
    return Components(label, same_or_above)
