"""The views of `tourney project bt`: what is rated, and what must be said beside it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from commands.cli.asked import Asked, Reading, require_no_tournament
from commands.cli.battle_sets import chosen, imported_battles
from commands.cli.place import head_at
from commands.errors import ConfigurationError
from commands.tables.bt import bt_table
from commands.tables.bt_notes import (
    among_note,
    coefficient_note,
    imported_note,
    missing_notes,
    weights_note,
)
from commands.tables.table import Table
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import EntrantId, Json
from ledger.store import Ledger
from projections import tournament_ratings
from projections.anchors import rate_among
from projections.battle_table import BattleTable, table_of
from projections.leaderboard import board_of
from projections.settled_battles import settled_battles
from projections.settlement import account_of


class Imported(NamedTuple):
    """A set of battles of others, and the last position that was read."""

    name: str
    battles: BattleTable
    judges: frozenset[str]
    as_of: int


def by_dimension(source: Reading, parameters: BradleyTerryParameters) -> Table:
    """Rate a tournament's entrants on each dimension.

    Raises:
        ConfigurationError: The anchor is no entrant.
        CannotRate: There is no such rating.
    """
    roster = _roster(source)
    if parameters.anchor not in {None, *roster}:
        known = ", ".join(roster)
        raise ConfigurationError([f"the anchor {parameters.anchor!r} is none of: {known}"])
    boards = tournament_ratings.by_dimension(source.settlements, parameters, roster)
    return bt_table(boards, parameters, notes=source.accounts, facts=_facts(source))


def overall(
    source: Reading, weights: Mapping[str, float], parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants over dimensions.

    Raises:
        CannotRate: There is no such rating.
    """
    board, ratings = tournament_ratings.overall(
        source.settlements, weights, parameters, _roster(source)
    )
    notes = (*source.accounts, weights_note(ratings), *missing_notes(board, ratings))
    shares: dict[str, Json] = {part.dimension: part.share for part in ratings.parts}
    facts = {**_facts(source), "weights": shares}
    return bt_table([board], parameters, notes=notes, facts=facts)


def controlled(
    source: Reading, features: Sequence[str], parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants as if all wrote alike.

    Raises:
        CannotRate: There is no such rating.
    """
    found = tournament_ratings.controlled(source.settlements, features, parameters, _roster(source))
    coefficients: dict[str, Json] = {
        board.name: [each._asdict() for each in ratings.coefficients] for board, ratings in found
    }
    notes = (
        *source.accounts,
        *(
            coefficient_note(board.name, each)
            for board, ratings in found
            for each in ratings.coefficients
        ),
    )
    facts = {**_facts(source), "coefficients": coefficients}
    return bt_table([board for board, _ in found], parameters, notes=notes, facts=facts)


def among_others(
    source: Reading, asked: Asked, name: str, parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants together with those of imported battles.

    Raises:
        ConfigurationError: No such battles were imported.
        CannotRate: There is no such rating.
    """
    imported, roster = imported_set(asked, name), _roster(source)
    rated = {
        dimension: rate_among(imported.battles, parameters, settled_battles(group, ties="half"))
        for dimension, group in source.settlements.items()
    }
    boards = [board_of(dimension, each.ratings, roster) for dimension, each in rated.items()]
    return bt_table(
        boards,
        parameters,
        notes=(
            *source.accounts,
            imported_note(imported.name, imported.battles),
            *(among_note(dimension, each) for dimension, each in rated.items()),
        ),
        facts={
            **_facts(source),
            "as_of": imported.as_of,
            "battles": name,
            "mae": {dimension: each.mae for dimension, each in rated.items()},
        },
        sources={
            place.entrant: each.source(place.entrant)
            for each, board in zip(rated.values(), boards, strict=True)
            for place in board.places
        },
    )


def of_imported(asked: Asked, name: str, parameters: BradleyTerryParameters) -> Table:
    """Rate the entrants of imported battles alone.

    Raises:
        ConfigurationError: No such battles were imported, or an option is of a tournament's.
        CannotRate: There is no such rating.
    """
    require_no_tournament(asked)
    imported = imported_set(asked, name)
    note = imported_note(name, imported.battles)
    facts: dict[str, Json] = {"battles": name, "as_of": imported.as_of}
    among = rate_among(imported.battles, parameters)
    board = board_of(name, among.ratings)
    is_judged = not imported.battles.is_human.all()
    return bt_table(
        [board],
        parameters,
        notes=(note, among_note(name, among)) if is_judged else [note],
        facts={**facts, "mae": {name: among.mae}} if is_judged else facts,
        sources={place.entrant: among.source(place.entrant) for place in board.places},
    )


def imported_set(asked: Asked, name: str) -> Imported:
    """Read a set of imported battles.

    Raises:
        ConfigurationError: There is no such set.
    """
    with Ledger.read_only(asked.ledger) as opened:
        as_of = head_at(opened, asked.as_of).position
        events = chosen(imported_battles(opened, as_of), [name]).events
    judges = {judge for event in events for judge in event.judges.values if judge is not None}
    return Imported(name, table_of(events), frozenset(judges), as_of)


def _roster(source: Reading) -> list[EntrantId]:
    return [entrant.entrant_id for entrant in source.state.roster]


def _facts(source: Reading) -> dict[str, Json]:
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge.judge_id, "accounts": accounts}
