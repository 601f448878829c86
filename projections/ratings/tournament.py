"""A tournament's Bradley-Terry leaderboards: by dimension, overall, and with style control."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, EntrantId
from projections.battles.columns import Battles, battles_of
from projections.intervals import Floats
from projections.ratings.bradley_terry.leaderboard import (
    NO_BATTLE,
    Leaderboard,
    board_of,
    leaderboard,
)
from projections.ratings.bradley_terry.overall import OverallRatings, rate_overall
from projections.ratings.style import AdjustedRatings, rate_adjusted
from projections.ratings.style_features import differences_in_style
from projections.results.ratings import BradleyTerryRow
from projections.tournament.settlement import Settlement

Groups: TypeAlias = Mapping[Dimension, Sequence[Settlement]]
"""What became of pairings, by dimension."""

FEATURES: Final = ("length", "headers", "lists", "bold")
"""What is known of how responses are written."""


def by_dimension(
    groups: Mapping[Dimension, Battles],
    parameters: BradleyTerryParameters,
    roster: Iterable[EntrantId],
) -> tuple[Leaderboard, ...]:
    """Rate a tournament's entrants on each dimension.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    roster = tuple(roster)
    return tuple(
        leaderboard(dimension, group.by_verdicts(parameters.ties), parameters, roster)
        for dimension, group in groups.items()
    )


def overall(
    groups: Groups,
    weights: Mapping[str, float],
    parameters: BradleyTerryParameters,
    roster: Iterable[EntrantId],
    *,
    widening: float = 1.0,
) -> tuple[Leaderboard, OverallRatings]:
    """Rate a tournament's entrants by the weighted mean of their ratings on dimensions.

    Args:
        groups: Settlements by dimension.
        weights: Of dimensions; 0 for those not named.
        parameters: Of the ratings on each dimension.
        roster: Entrants to list even without a battle.
        widening: Of intervals, since there were looks.

    Raises:
        CannotRate: As for `bradley_terry.overall.rate_overall`.
    """
    settled = [settlement for group in groups.values() for settlement in group]
    battles = battles_of(settled, widening=widening)
    ratings = rate_overall(
        battles.by_verdicts(parameters.ties),
        [settled[place].dimension for place in battles.verdict_places(parameters.ties)],
        {**dict.fromkeys(groups, 0.0), **weights},
        parameters,
    )
    board = board_of("overall", ratings.ratings, roster)
    return replace(board, rows=tuple(map(_overall_place, board.rows))), ratings


def _overall_place(place: BradleyTerryRow) -> BradleyTerryRow:
    """Replace a reason that holds on one dimension only, as `undefeated` does.

    `OverallRatings.missing` says which dimensions lack a rating, and why.
    """
    if place.reason in {None, NO_BATTLE}:
        return place
    return place._replace(reason="not rated on every dimension")


def style_controlled(
    groups: Groups,
    features: Sequence[str],
    parameters: BradleyTerryParameters,
    roster: Iterable[EntrantId],
    *,
    widening: Callable[[Dimension], float] = lambda _: 1.0,
) -> tuple[tuple[Leaderboard, AdjustedRatings], ...]:
    """Rate a tournament's entrants on each dimension, controlling for style features.

    A pair with a redacted response does not count: its style is not known any more.

    Args:
        groups: Settlements by dimension.
        features: Some of FEATURES.
        parameters: Of the ratings.
        roster: Entrants to list even without a battle.
        widening: Of intervals on a dimension, since there were looks.

    Raises:
        CannotRate: As for `ratings.style.rate_adjusted`.
    """
    roster = tuple(roster)
    shown = {dimension: with_texts(group) for dimension, group in groups.items()}
    adjusted = {
        dimension: rate_adjusted(
            battles_of(group, widening=widening(dimension)).by_verdicts("half"),
            style_of_battles(group, features),
            parameters,
        )
        for dimension, group in shown.items()
    }
    return tuple(
        (board_of(dimension, ratings.ratings, roster), ratings)
        for dimension, ratings in adjusted.items()
    )


def with_texts(group: Iterable[Settlement]) -> list[Settlement]:
    """Return the pairs with a verdict of which both responses can be read."""
    return [
        settlement
        for settlement in group
        if settlement.share is not None and settlement.match is not None
    ]


def style_of_battles(group: Iterable[Settlement], names: Sequence[str]) -> dict[str, Floats]:
    """Return features of battles `with_texts`: each difference in style, a's response minus b's.

    Args:
        group: The battles.
        names: Some of FEATURES.
    """
    matches = [settlement.match for settlement in group if settlement.match is not None]
    differences = differences_in_style(
        [match.response_a.text for match in matches], [match.response_b.text for match in matches]
    )
    return {name: differences[name] for name in names}
