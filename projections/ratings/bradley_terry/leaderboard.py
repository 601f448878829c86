"""Leaderboards by Bradley-Terry rating: ranks, groups, and entrants without a rating."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import erf, isfinite, sqrt
from statistics import NormalDist
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, Reason, rate
from projections.ratings.bradley_terry.uncertainty import NO_SPREAD

_DECIMALS: Final = 6  # of Elo points: what differs by less is equal but for rounding


class Ranks(NamedTuple):
    """Ranks, (n,) each, among the entrants that one can be compared with.

    best: its rank, 1 + the number of significantly better entrants; worst: the number that are not
    significantly worse, itself included; among: how many are comparable, itself included.
    """

    best: NDArray[np.intp]
    worst: NDArray[np.intp]
    among: NDArray[np.intp]


def ranks(ratings: BradleyTerryRatings) -> Ranks:
    """Rank entrants.

    An entrant is significantly better if its rating is higher by more than z standard errors of the
    difference, z as for the level of the ratings' intervals; or if its component is above the
    other's.
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
    """Return the probability that each entrant is better than each other, (n, n).

    The normal distribution function at the difference over its standard error; NaN between
    components, without intervals, where no two clusters differ about both, and on the diagonal.
    """
    points, error = _differences(ratings)
    normal = [(1 + erf(each / sqrt(2))) / 2 for each in (points / error).flat]
    return np.reshape(normal, points.shape)


def _differences(ratings: BradleyTerryRatings) -> tuple[Floats, Floats]:
    """Return the rating of i minus that of j, and its standard error, (n, n) each.

    NaN between components; an error is also NaN where no two clusters differ about i and j.
    """
    points = np.round(ratings.rating[:, None] - ratings.rating, _DECIMALS)
    variance = ratings.covariance.diagonal()
    squared = variance[:, None] + variance - (ratings.covariance + ratings.covariance.T)
    error = np.sqrt(np.maximum(squared, 0.0))
    return points, np.where(error < NO_SPREAD, np.nan, error)


Unrated: TypeAlias = Reason | Literal["no battle", "not rated on every dimension"]


class LeaderboardRow(NamedTuple):
    """One entrant; it can be compared with its component and those above or below it."""

    entrant: str
    rating: float | None
    lower: float | None  # None, too, where a bound is beyond all numbers
    upper: float | None
    rank: int | None  # 1 + how many are surely better, of those that are comparable
    worst_rank: int | None  # how many are not surely worse
    n_battles: int
    component: int | None  # None: it was not among those that were rated
    reason: Unrated | None  # why there is no rating

    @property
    def group(self) -> int | None:
        """Its component's number for people, who count from 1."""
        return None if self.component is None else self.component + 1


@dataclass(frozen=True)
class Leaderboard:
    """Entrants that were rated together, the best first, then those without battles.

    A component that is above another comes first, and within a component the higher rating; between
    components without an order, the order of rows means nothing.
    """

    name: str  # of the dimension, or whatever was rated
    rows: tuple[LeaderboardRow, ...]
    ratings: BradleyTerryRatings

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The entrants of each component, the best first."""
        numbers = range(len(self.ratings.components))
        return tuple(
            tuple(place.entrant for place in self.rows if place.component == number)
            for number in numbers
        )

    @property
    def above(self) -> tuple[tuple[int, int], ...]:
        """Pairs of groups: (3, 5) says that the third is above the fifth, counting from 1."""
        return tuple((x + 1, y + 1) for x, y in np.argwhere(self.ratings.components.above).tolist())


def leaderboard(
    name: str, battles: Battles, parameters: BradleyTerryParameters, roster: Iterable[str] = ()
) -> Leaderboard:
    """Rate entrants by their battles, and order them.

    An anchor without battles is dropped, and the ratings' parameters say so. The roster is listed
    even without a battle; the name is the dimension, or another.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    if parameters.anchor not in {None, *battles.entrants}:
        parameters = replace(parameters, anchor=None)
    return board_of(name, rate(battles, parameters), roster)


def board_of(name: str, ratings: BradleyTerryRatings, roster: Iterable[str] = ()) -> Leaderboard:
    """Order rated entrants, then list those of the roster that were not rated."""
    best, worst, _ = ranks(ratings)
    rows = zip(ratings.rows(), best.tolist(), worst.tolist(), strict=True)
    placed = [
        LeaderboardRow(
            row.entrant,
            rating=row.rating,
            lower=_finite(row.lower),
            upper=_finite(row.upper),
            rank=rank,
            worst_rank=worst_rank,
            n_battles=row.n_battles,
            component=row.component,
            reason=row.reason if row.n_battles or row.rating is not None else "no battle",
        )
        for row, rank, worst_rank in rows
    ]
    idle = [
        LeaderboardRow(entrant, None, None, None, None, None, 0, None, "no battle")
        for entrant in roster
        if entrant not in ratings.entrants
    ]
    return Leaderboard(name, (*sorted(placed, key=_from_the_best_down), *idle), ratings)


def _from_the_best_down(place: LeaderboardRow) -> tuple[bool, int | None, float]:
    return place.reason == "no battle", place.component, -(place.rating or 0.0)


def _finite(bound: float | None) -> float | None:
    return bound if bound is not None and isfinite(bound) else None
