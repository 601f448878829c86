"""Leaderboards by Bradley-Terry rating: ranks, groups, and entrants without a rating."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.ratings.bradley_terry.comparisons import ranks
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, rate
from projections.results.ratings import BradleyTerryRow

NO_BATTLE: Final = "no battle"
"""The reason of an entrant that was not among those that were rated, or never won nor lost."""


@dataclass(frozen=True)
class Leaderboard:
    """Entrants that were rated together, the best first, then those without battles.

    A component that is above another comes first, and within a component the higher rating; between
    components without an order, the order of rows means nothing.
    """

    name: str  # of the dimension, or whatever was rated
    rows: tuple[BradleyTerryRow, ...]
    ratings: BradleyTerryRatings

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The entrants of each component, the best first; rows count them from 1."""
        numbers = range(1, len(self.ratings.components) + 1)
        return tuple(
            tuple(place.entrant for place in self.rows if place.group == number)
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
    rows = zip(ratings.rows(name), low.tolist(), high.tolist(), strict=True)
    placed = [
        row._replace(
            rank=_rank(rank_low, rank_high),
            rank_low=rank_low or None,
            rank_high=rank_high or None,
            reason=row.reason if row.n_battles or row.rating is not None else NO_BATTLE,
        )
        for row, rank_low, rank_high in rows
    ]
    idle = [
        BradleyTerryRow(name, entrant, reason=NO_BATTLE)
        for entrant in roster
        if entrant not in ratings.entrants
    ]
    return Leaderboard(name, (*sorted(placed, key=_from_the_best_down), *idle), ratings)


def _rank(low: int, high: int) -> str | None:
    """Return ranks as "1" or "2-4"; None: there are none."""
    if low == high:
        return str(low) if low else None
    return f"{low}-{high}"


def _from_the_best_down(place: BradleyTerryRow) -> tuple[bool, int | None, float]:
    return place.reason == NO_BATTLE, place.group, -(place.rating or 0.0)
