"""Entrants by Bradley-Terry rating, with their ranks, and those that have no rating."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.battles import Battles
from projections.ranks import ranks
from projections.ratings import BradleyTerryRatings, Reason, rate

Unrated: TypeAlias = Reason | Literal["no battle", "not rated on every dimension"]


class Place(NamedTuple):
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
    places: tuple[Place, ...]
    ratings: BradleyTerryRatings

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The components: who can be compared by rating, the best first."""
        numbers = range(len(self.ratings.components))
        return tuple(
            tuple(place.entrant for place in self.places if place.component == number)
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
        CannotRate: As `projections.ratings.rate` says.
    """
    if parameters.anchor not in {None, *battles.entrants}:
        parameters = replace(parameters, anchor=None)
    return board_of(name, rate(battles, parameters), roster)


def board_of(name: str, ratings: BradleyTerryRatings, roster: Iterable[str] = ()) -> Leaderboard:
    """Order entrants that were rated, and name after them those of a roster that were not."""
    best, worst, _ = ranks(ratings)
    rows = zip(ratings.rows(), best.tolist(), worst.tolist(), strict=True)
    placed = [
        Place(
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
        Place(entrant, None, None, None, None, None, 0, None, "no battle")
        for entrant in roster
        if entrant not in ratings.entrants
    ]
    return Leaderboard(name, (*sorted(placed, key=_from_the_best_down), *idle), ratings)


def _from_the_best_down(place: Place) -> tuple[bool, int | None, float]:
    return place.reason == "no battle", place.component, -(place.rating or 0.0)


def _finite(bound: float | None) -> float | None:
    return bound if bound is not None and isfinite(bound) else None
