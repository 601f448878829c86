"""Bradley-Terry ratings in the shape of JudgeArena's `elo_ratings.json`, with its fields and more.

JudgeArena has one kind of interval and one list, each entrant with a number. Here is said which
kind it is and of what level, each rating names its dimension, and those that have no rating stand
apart with the reason.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final

from ledger.events.imported_ratings import RatingSource
from ledger.events.ratings import BradleyTerryParameters
from projections.battle_records import Fields
from projections.leaderboard import Leaderboard

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
    """Return what was rated, ratings of a dimension from the highest down.

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
        "ratings": [row for board in boards for row in _ratings(board, sources or {})],
        "unrated": [
            {"model": place.entrant, "dimension": board.name, "reason": place.reason}
            for board in boards
            for place in board.places
            if place.rating is None
        ],
    }


def _ratings(board: Leaderboard, sources: Mapping[str, RatingSource]) -> list[Fields]:
    rows: list[tuple[float, str, Fields]] = []
    for place in board.places:
        if place.rating is not None:
            rating = round(place.rating, _DECIMALS)
            rows.append(
                (
                    -rating,
                    place.entrant,
                    {
                        "model": place.entrant,
                        "rating": rating,
                        "ci_low": _rounded(place.lower),
                        "ci_high": _rounded(place.upper),
                        "n_battles": place.n_battles,
                        "source": sources.get(place.entrant, "evaluated"),
                        "dimension": board.name,
                    },
                )
            )
    return [fields for _, _, fields in sorted(rows, key=itemgetter(0, 1))]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)
