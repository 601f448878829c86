"""A tournament's Bradley-Terry ratings: by dimension, overall, and as if all wrote alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, EntrantId
from projections.battles.settled import decided_or_tied, settled_battles
from projections.intervals import Floats
from projections.ratings._style_features import style_features, style_of
from projections.ratings.bradley_terry.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    board_of,
    leaderboard,
)
from projections.ratings.bradley_terry.overall import OverallRatings, rate_overall
from projections.ratings.style import AdjustedRatings, rate_adjusted
from projections.tournament.settlement import Settlement

Groups: TypeAlias = Mapping[Dimension, Sequence[Settlement]]
"""What became of pairings, by dimension."""

FEATURES: Final = ("length", "headers", "lists", "bold")
"""What is known of how responses are written."""


class Overall(NamedTuple):
    """The leaderboard over all dimensions, and what it is made of."""

    board: Leaderboard
    ratings: OverallRatings


class StyleControlled(NamedTuple):
    """A dimension's leaderboard as if all wrote alike, and what style wins."""

    board: Leaderboard
    ratings: AdjustedRatings


def by_dimension(
    groups: Groups, parameters: BradleyTerryParameters, roster: Iterable[EntrantId]
) -> tuple[Leaderboard, ...]:
    """Rate a tournament's entrants on each dimension.

    Raises:
        CannotRate: As `projections.ratings.bradley_terry.rate.rate` says.
    """
    roster = tuple(roster)
    return tuple(
        leaderboard(dimension, settled_battles(group, ties="half"), parameters, roster)
        for dimension, group in groups.items()
    )


def overall(
    groups: Groups,
    weights: Mapping[str, float],
    parameters: BradleyTerryParameters,
    roster: Iterable[EntrantId],
) -> Overall:
    """Rate a tournament's entrants by the weighted mean of their ratings on dimensions.

    Args:
        groups: What became of the pairings.
        weights: Of dimensions; one that is not named counts nothing.
        parameters: Of the ratings on each dimension.
        roster: Who is named even without a battle.

    Raises:
        CannotRate: As `projections.ratings.bradley_terry.overall.rate_overall` says.
    """
    battles = [each for group in groups.values() for each in decided_or_tied(group)]
    ratings = rate_overall(
        settled_battles(battles, ties="half"),
        [each.pairing.rubric.dimension for each in battles],
        {**dict.fromkeys(groups, 0.0), **weights},
        parameters,
    )
    board = board_of("overall", ratings.ratings, roster)
    return Overall(replace(board, rows=tuple(map(_overall_place, board.rows))), ratings)


def _overall_place(place: LeaderboardRow) -> LeaderboardRow:
    """Give the reason that is true overall: who is undefeated on one dimension may lose on another.

    Which dimensions keep it from a rating, and why, `OverallRatings.missing` says.
    """
    if place.reason in {None, "no battle"}:
        return place
    return place._replace(reason="not rated on every dimension")


def style_controlled(
    groups: Groups,
    features: Sequence[str],
    parameters: BradleyTerryParameters,
    roster: Iterable[EntrantId],
) -> tuple[StyleControlled, ...]:
    """Rate a tournament's entrants on each dimension as if all responses had some features alike.

    Args:
        groups: What became of the pairings.
        features: Some of FEATURES.
        parameters: Of the ratings.
        roster: Who is named even without a battle.

    Raises:
        CannotRate: As `projections.ratings.style.rate_adjusted` says.
    """
    roster = tuple(roster)
    adjusted = {
        dimension: rate_adjusted(
            settled_battles(group, ties="half"), _features(group, features), parameters
        )
        for dimension, group in groups.items()
    }
    return tuple(
        StyleControlled(board_of(dimension, each.ratings, roster), each)
        for dimension, each in adjusted.items()
    )


def _features(group: Iterable[Settlement], names: Sequence[str]) -> dict[str, Floats]:
    """Return by how much the response of a exceeds that of b, of each battle."""
    matches = [each.match for each in decided_or_tied(group) if each.match is not None]
    found = style_features(
        [style_of(each.response_a.text) for each in matches],
        [style_of(each.response_b.text) for each in matches],
    )
    return {name: found[name] for name in names}
