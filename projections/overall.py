"""One rating across dimensions: the mean of an entrant's ratings, by weights that are stated.

A prompt's responses are compared on every dimension, and what became of them moves together. So
the interval is the sandwich's of all dimensions together: what a prompt moved each rating by is
added up over dimensions before it is squared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite
from typing import Literal, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles import Battles
from projections.component_rating import normal
from projections.components import Components
from projections.errors import CannotRate
from projections.joint_covariance import Part, joint_covariance
from projections.ratings import BradleyTerryRatings, Reason, Zero, rate


class Missing(NamedTuple):
    """A dimension on which an entrant has no rating, and why."""

    dimension: str
    reason: Reason | Literal["no battle"] | None


@dataclass(frozen=True)
class OverallRatings:
    """Ratings overall, and what they are made of.

    Attributes:
        parts: The dimensions that have a weight.
        ratings: Of entrants rated on all of these. Comparable are those who are on each; one is
            above another who is nowhere above or incomparable. It has no nu of its own: NaN.
    """

    parts: tuple[Part, ...]
    ratings: BradleyTerryRatings

    def zeros(self) -> tuple[Zero, ...]:
        """Return what each rating hangs from, (n,): on each dimension from something."""
        return tuple(zip(*(part.ratings.zeros() for part in self.parts), strict=True))

    def missing(self, entrant: str) -> tuple[Missing, ...]:
        """Say where an entrant has no rating: what keeps it from having one overall."""
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
        battles: What was fought on all dimensions; a prompt has one number on all.
        dimensions: (n,) on which a battle was fought.
        weights: Of every dimension, 0 or more; 0 leaves it out.
        parameters: Of the ratings on each dimension, with the sandwich.

    Raises:
        CannotRate: A dimension has no weight, or no battle; a weight is below 0; none is above;
            the parameters ask for resamples; or as in ratings on one dimension.
        ValueError: There are not as many dimensions as battles.
    """
    if parameters.interval != "sandwich":
        raise CannotRate("overall ratings need the sandwich", "ask for it")
    if len(dimensions) != len(battles):
        raise ValueError("dimensions are given one for each battle")
    if parameters.unit == "battles":
        battles = replace(battles, cluster=np.arange(len(battles)), prompts=())
    column = np.array(dimensions, dtype=np.str_)
    fought = {
        dimension: (share, battles.take(column == dimension))
        for dimension, share in _shares(weights, dimensions).items()
    }
    parts = tuple(
        Part(dimension, share, those, rate(those, parameters))
        for dimension, (share, those) in fought.items()
    )
    return OverallRatings(parts, _overall(parts))


def _shares(weights: Mapping[str, float], dimensions: Sequence[str]) -> dict[str, float]:
    """Divide weights by their sum, leaving out what has none."""
    fought = dict.fromkeys(dimensions)
    for dimension in fought:
        if dimension not in weights:
            raise CannotRate(f"dimension {dimension!r} has no weight", "state one, or 0")
    for dimension, weight in weights.items():
        if not (weight >= 0 and isfinite(weight)):
            raise CannotRate(f"dimension {dimension!r} has the weight {weight}", "state 0 or more")
        if weight and dimension not in fought:
            raise CannotRate(f"dimension {dimension!r} has no battle", "leave it out")
    total = fsum(weights.values())
    if not total:
        raise CannotRate("no dimension has a weight above 0", "state one")
    return {dimension: weight / total for dimension, weight in weights.items() if weight}


def _overall(parts: Sequence[Part]) -> BradleyTerryRatings:
    some = parts[0].ratings
    components = _product([part.ratings.components for part in parts])
    rating = np.sum([part.share * part.ratings.rating for part in parts], axis=0)
    covariance = np.full((len(rating), len(rating)), np.nan)
    for number in range(len(components)):
        members = components.members(number)
        if not np.isnan(rating[members[0]]):
            covariance[np.ix_(members, members)] = joint_covariance(parts, members)
    uncertainty = normal(rating, covariance, some.parameters.level)
    known = uncertainty.without_certainty(some.entrants, some.parameters.anchor)
    return replace(
        some,
        components=components,
        rating=rating,
        lower=known.lower,
        upper=known.upper,
        covariance=known.covariance,
        nu=np.full(len(components), np.nan),
        n_battles=np.sum([part.ratings.n_battles for part in parts], axis=0),
    )


def _product(several: Sequence[Components]) -> Components:
    """Put together who is together in each; above is who is above in some, and together else."""
    labels, label = np.unique([each.label for each in several], axis=1, return_inverse=True)
    same_or_above = np.ones((labels.shape[1], labels.shape[1]), dtype=np.bool_)
    for each, row in zip(several, labels, strict=True):
        same_or_above &= each.above[np.ix_(row, row)] | (row[:, None] == row)
    np.fill_diagonal(same_or_above, val=False)
    return Components(label, same_or_above)
