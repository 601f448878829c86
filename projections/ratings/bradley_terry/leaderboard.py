"""Entrants by Bradley-Terry rating, with their ranks, and those that have no rating."""

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
from projections.ratings.bradley_terry.fit import ROUNDING
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, Reason, rate

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


Unrated: TypeAlias = Reason | Literal["no battle", "not rated on every dimension"]


class LeaderboardRow(NamedTuple):
    """One entrant's place; comparable are those of its component, or of one above or below."""

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
        """The number of its component among people, who count from 1."""
        return None if self.component is None else self.component + 1


@dataclass(frozen=True)
class Leaderboard:
    """What was rated together: its places from the best down, then those of no battle.

    What is above stands above, and within a component who has the higher rating; where there is
    no order, as between islands, the order of rows says nothing.
    """

    name: str  # of the dimension, or whatever was rated
    rows: tuple[LeaderboardRow, ...]
    ratings: BradleyTerryRatings

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The components: who can be compared by rating, the best first."""
        numbers = range(len(self.ratings.components))
        return tuple(
            tuple(place.entrant for place in self.rows if place.component == number)
            for number in numbers
        )

    @property
    def above(self) -> tuple[tuple[int, int], ...]:
        """Which group is above which: (3, 5) is the third above the fifth, counted from 1."""
        return tuple((x + 1, y + 1) for x, y in np.argwhere(self.ratings.components.above).tolist())


def leaderboard(
    name: str, battles: Battles, parameters: BradleyTerryParameters, roster: Iterable[str] = ()
) -> Leaderboard:
    """Rate entrants by their battles, and order them.

    Where the anchor fought none of the battles, the ratings hang from nothing: their parameters
    say so.

    Args:
        name: What is rated.
        battles: What was fought.
        parameters: The model, and the interval.
        roster: Who is named even without a battle.

    Raises:
        CannotRate: As `projections.ratings.bradley_terry.rate.rate` says.
    """
    if parameters.anchor not in {None, *battles.entrants}:
        parameters = replace(parameters, anchor=None)
    return board_of(name, rate(battles, parameters), roster)


def board_of(name: str, ratings: BradleyTerryRatings, roster: Iterable[str] = ()) -> Leaderboard:
    """Order entrants that were rated, and name after them those of a roster that were not."""
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
