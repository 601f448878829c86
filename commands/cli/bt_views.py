"""The views of a tournament in `tourney project bt`, and what must be said beside them."""

from collections.abc import Mapping, Sequence

from commands.cli.asked import Reading
from commands.errors import ConfigurationError
from commands.tables.bt import bt_table
from commands.tables.bt_notes import coefficient_note, marks_note, missing_notes, weights_note
from commands.tables.table import Table
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, EntrantId, Json
from projections.battles.columns import Battles
from projections.battles.settled import marked_in_orders, settled_battles
from projections.ratings import tournament as tournament_ratings
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.tournament.settlement import account_of


def by_dimension(
    source: Reading, parameters: BradleyTerryParameters, temperature: float | None
) -> Table:
    """Rate a tournament's entrants on each dimension, by marks if there is a temperature.

    Raises:
        ConfigurationError: The anchor is no entrant.
        CannotRate: There is no such rating.
    """
    roster = roster_of(source)
    if parameters.anchor not in {None, *roster}:
        known = ", ".join(roster)
        raise ConfigurationError([f"the anchor {parameters.anchor!r} is none of: {known}"])
    boards = [
        leaderboard(dimension, battles, parameters, roster)
        for dimension, battles in battles_by_dimension(source, temperature).items()
    ]
    if temperature is None:
        return bt_table(boards, parameters, notes=source.notes, facts=facts_of(source))
    return bt_table(
        boards,
        parameters,
        notes=(*source.notes, marks_note(temperature)),
        facts={**facts_of(source), "temperature": temperature},
    )


def overall(
    source: Reading, weights: Mapping[str, float], parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants over dimensions.

    Raises:
        CannotRate: There is no such rating.
    """
    board, ratings = tournament_ratings.overall(
        source.settlements, weights, parameters, roster_of(source)
    )
    notes = (*source.notes, weights_note(ratings), *missing_notes(board, ratings))
    shares: dict[str, Json] = {part.dimension: part.share for part in ratings.parts}
    facts = {**facts_of(source), "weights": shares}
    return bt_table([board], parameters, notes=notes, facts=facts, zeros=[ratings.zeros()])


def controlled(
    source: Reading, features: Sequence[str], parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants as if all wrote alike.

    Raises:
        CannotRate: There is no such rating.
    """
    found = tournament_ratings.controlled(
        source.settlements, features, parameters, roster_of(source)
    )
    coefficients: dict[str, Json] = {
        board.name: [each._asdict() for each in ratings.coefficients] for board, ratings in found
    }
    notes = (
        *source.notes,
        *(
            coefficient_note(board, each)
            for board, ratings in found
            for each in ratings.coefficients
        ),
    )
    facts = {**facts_of(source), "coefficients": coefficients}
    return bt_table([board for board, _ in found], parameters, notes=notes, facts=facts)


def battles_by_dimension(source: Reading, temperature: float | None) -> Mapping[Dimension, Battles]:
    """Return a tournament's battles by dimension: who won, or at a temperature soft scores."""
    return {
        dimension: settled_battles(group, ties="half")
        if temperature is None
        else marked_in_orders(source.state, group).soft(temperature)
        for dimension, group in source.settlements.items()
    }


def roster_of(source: Reading) -> list[EntrantId]:
    """Return the entrants' names, in the tournament's order."""
    return [entrant.entrant_id for entrant in source.state.roster]


def facts_of(source: Reading) -> dict[str, Json]:
    """Return who judged, and what became of the pairings."""
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge_id, "accounts": accounts}
