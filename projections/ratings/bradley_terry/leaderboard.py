"""Leaderboards by Bradley-Terry rating: ranks, groups, and entrants without a rating."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.ratings.bradley_terry.comparisons import ranks
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, Reason, rate

Unrated: TypeAlias = Reason | Literal["no battle", "not rated on every dimension"]


class LeaderboardRow(NamedTuple):
    """One entrant; its ranks are those within its component."""

    entrant: str
    rating: float | None
    lower: float | None  # None, too, where a bound is beyond all numbers
    upper: float | None
    rank_low: int | None  # 1 + how many are surely better; None: no interval, or nobody to compare
    rank_high: int | None  # how many are not surely worse, itself included
    n_battles: int
    component: int | None  # None: it was not among those that were rated
    reason: Unrated | None  # why there is no rating
    no_interval: str | None = None  # why a rating has no interval, and no rank

    @property
    def rank(self) -> str | None:
        """Its ranks, as "1" or "2-4"."""
        if self.rank_low == self.rank_high:
            return None if self.rank_low is None else str(self.rank_low)
        return f"{self.rank_low}-{self.rank_high}"

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
    low, high = ranks(ratings)
    rows = zip(ratings.rows(), low.tolist(), high.tolist(), strict=True)
    placed = [
        LeaderboardRow(
            row.entrant,
            rating=row.rating,
            lower=_finite(row.lower),
            upper=_finite(row.upper),
            rank_low=rank_low or None,
            rank_high=rank_high or None,
            n_battles=row.n_battles,
            component=row.component,
            reason=row.reason if row.n_battles or row.rating is not None else "no battle",
            no_interval=row.no_interval,
        )
        for row, rank_low, rank_high in rows
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
