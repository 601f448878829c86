"""Bradley-Terry ratings in the shape of JudgeArena's `elo_ratings.json`, with its fields and more.

JudgeArena has one kind of interval and one list, each entrant with a number. Here is said which
kind it is and of what level, each rating names its dimension and its group, within which alone
ratings compare, and those that have no rating stand apart with the reason.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ledger.events.imports import RatingSource
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battle_records import Fields
from projections.leaderboard import Leaderboard, Place

_DECIMALS: Final = 3
"""Of Elo points: a solver's last bits are the processor's, and a replay elsewhere must agree."""


def rating_records(
    boards: Iterable[Leaderboard],
    parameters: BradleyTerryParameters,
    *,
    arena: str,
    judge_model: str | None,
    sources: Mapping[str, RatingSource] | None = None,
) -> Fields:
    """Return what was rated: of a dimension group by group, in each from the highest rating down.

    Args:
        boards: What was rated, by dimension.
        parameters: How.
        arena: Where the battles are from.
        judge_model: Who judged; None where several did, or people.
        sources: By entrant, evaluated or human; who is not named was evaluated.
    """
    boards = tuple(boards)
    is_bootstrap = parameters.interval != "sandwich"
    return {
        "arena": arena,
        "model": None,
        "judge_model": judge_model,
        "n_bootstraps": parameters.resamples if is_bootstrap else 0,
        "seed": parameters.seed,
        "method": "bradley-terry",
        "interval": parameters.interval,
        "unit": parameters.unit,
        "level": parameters.level,
        "parameters": parameters.fields,
        "fits": {board.name: _fit(board) for board in boards},
        "ratings": [
            _rating(place, rating, sources or {}) | _place(board, place)
            for board in boards
            for rating, place in _rated(board)
        ],
        "unrated": [
            {"model": place.entrant} | _place(board, place) | {"reason": place.reason}
            for board in boards
            for place in board.places
            if place.rating is None
        ],
    }


def _fit(board: Leaderboard) -> Json:
    """Return who is in which group, by name, and which group is above which."""
    return {
        "groups": [sorted(group) for group in board.groups],
        "above": [list(pair) for pair in board.above],
    }


def _rated(board: Leaderboard) -> list[tuple[float, Place]]:
    """Return who has a rating, with it: in the board's order, equals by name."""
    rated = [
        (round(place.rating, _DECIMALS), place)
        for place in board.places
        if place.rating is not None
    ]
    return sorted(rated, key=lambda each: (each[1].component, -each[0], each[1].entrant))


def _rating(place: Place, rating: float, sources: Mapping[str, RatingSource]) -> Fields:
    return {
        "model": place.entrant,
        "rating": rating,
        "ci_low": _rounded(place.lower),
        "ci_high": _rounded(place.upper),
        "n_battles": place.n_battles,
        "source": sources.get(place.entrant, "evaluated"),
    }


def _place(board: Leaderboard, place: Place) -> Fields:
    return {"dimension": board.name, "group": place.group}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)
