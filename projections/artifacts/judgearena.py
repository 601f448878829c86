"""JudgeArena's formats: battles, and Bradley-Terry ratings as `elo_ratings.json`.

JudgeArena has one kind of interval and one list, each entrant with a number. Here the kind and
level of the interval are stated, each rating names its dimension and its group, within which alone
ratings compare, and entrants without a rating are listed apart with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ledger.events.imports import BattlesImported, ImportedBattle, RatingSource, Winner
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, Fields, Json
from projections.battles.columns import TIE
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.results.ratings import BradleyTerryRow
from projections.tournament.settlement import Settlement


def of_settlements(settlements: Iterable[Settlement], judge_model: str | None) -> Iterator[Fields]:
    """Yield a battle for each pairing, or each order of one, with a verdict.

    The preference is the mean of both orders' verdicts: 1/4 where a won beside a tie. With a
    verdict in one order only, a battle has half the weight.

    Args:
        settlements: In order; where each order counts separately, a battle names the entrants in
            roster order, whatever slots they were shown in.
        judge_model: The judge; None for a jury.
    """
    for settlement in settlements:
        share = settlement.share
        if share is not None:
            yield _record(
                ImportedBattle(
                    settlement.pairing.a.entrant.entrant_id,
                    settlement.pairing.b.entrant.entrant_id,
                    winner_by(share),
                    1 - share,
                    settlement.pairing.prompt.prompt_id,
                    "llm-judge",
                    judge_model,
                    settlement.weight,
                )
            )


def winner_by(share: float) -> Winner:
    """Return who won by what a took."""
    if share == TIE:
        return "tie"
    return "model_a" if share > TIE else "model_b"


def of_imported(events: Iterable[BattlesImported]) -> Iterator[Fields]:
    """Yield imported battles, in order."""
    for event in events:
        yield from map(_record, event.battles())


def _record(battle: ImportedBattle) -> Fields:
    """Return a battle as JSON, without what says nothing."""
    is_unread = battle.winner == "no verdict" and battle.source == "llm-judge"
    said: Fields = {
        "model_a": battle.model_a,
        "model_b": battle.model_b,
        "winner": "tie" if is_unread else battle.winner,
    }
    if battle.pref is not None or is_unread:
        said["pref"] = battle.pref
    said["source"] = battle.source
    for name in ("judge_model", "question_id"):
        if (text := getattr(battle, name)) is not None:
            said[name] = text
    if battle.weight != 1:
        said["weight"] = battle.weight
    return said | _about(battle)


def _about(battle: ImportedBattle) -> Fields:
    """Return what is known of a battle beside its result, in fields that JudgeArena ignores."""
    said = {
        "votes": [list(vote) for vote in battle.votes] or None,
        "category": list(battle.categories) or None,
        "language": battle.language,
        "length_a": battle.length_a,
        "length_b": battle.length_b,
    }
    return {name: value for name, value in said.items() if value is not None}


def of_dimensions(
    by_dimension: Mapping[Dimension, Iterable[Settlement]], judge_model: str | None
) -> Iterator[Fields]:
    """Yield battles as `of_settlements` does, each with its dimension and its prompt's category."""
    for dimension, settlements in by_dimension.items():
        for settlement in settlements:
            category = settlement.pairing.prompt.category
            more = {"category": [category]} if category else {}
            for record in of_settlements([settlement], judge_model):
                yield {**record, "dimension": dimension, **more}


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
    """Return ratings as JSON: by dimension, then group, from the highest rating down.

    Args:
        boards: The leaderboards, by dimension.
        parameters: Of the ratings.
        arena: Where the battles come from.
        judge_model: The judge; None for several judges or people.
        sources: By entrant, evaluated or human; evaluated by default.
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
            for place in board.rows
            if place.rating is None
        ],
    }


def _fit(board: Leaderboard) -> Json:
    """Return the groups, by entrant names, and which group is above which."""
    return {
        "groups": [sorted(group) for group in board.groups],
        "above": [list(pair) for pair in board.above],
    }


def _rated(board: Leaderboard) -> list[tuple[float, BradleyTerryRow]]:
    """Return the rated entrants with their ratings: in the board's order, equals by name."""
    rated = [
        (round(place.rating, _DECIMALS), place) for place in board.rows if place.rating is not None
    ]
    return sorted(rated, key=lambda each: (each[1].group, -each[0], each[1].entrant))


def _rating(place: BradleyTerryRow, rating: float, sources: Mapping[str, RatingSource]) -> Fields:
    return {
        "model": place.entrant,
        "rating": rating,
        "ci_low": _rounded(place.low),
        "ci_high": _rounded(place.high),
        "n_battles": place.n_battles,
        "source": sources.get(place.entrant, "evaluated"),
        **({"no_interval": place.no_interval} if place.no_interval else {}),
    }


def _place(board: Leaderboard, place: BradleyTerryRow) -> Fields:
    return {"dimension": board.name, "group": place.group}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)
