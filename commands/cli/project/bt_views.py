"""The views of a tournament in `tourney project bt`, and what must be said beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commands.cli.project.bt_options import Softness
from commands.cli.shared.reading import Asked, notes_of, read_set, require_no_tournament
from commands.cli.tables.bradley_terry import (
    among_note,
    bt_table,
    coefficient_note,
    imported_note,
    marks_note,
    missing_notes,
    weights_note,
)
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import require_anchor
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, Json
from projections.battles.columns import Battles
from projections.battles.imported import BattleTable, table_of
from projections.battles.settled import scored_orders, settled_battles
from projections.ratings import tournament as tournament_ratings
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import board_of, leaderboard
from projections.tournament.settlement import account_of


def by_dimension(
    source: JudgedTournament, parameters: BradleyTerryParameters, temperature: float | None
) -> Table:
    """Rate a tournament's entrants on each dimension, by marks if there is a temperature.

    Raises:
        ConfigurationError: The anchor is no entrant.
        CannotRate: There is no such rating.
    """
    require_anchor(parameters, source.roster)
    boards = [
        leaderboard(dimension, battles, parameters, source.roster)
        for dimension, battles in battles_by_dimension(source, temperature).items()
    ]
    if temperature is None:
        return bt_table(boards, parameters, notes=notes_of(source), facts=facts_of(source))
    return bt_table(
        boards,
        parameters,
        notes=(*notes_of(source), marks_note(temperature)),
        facts={**facts_of(source), "temperature": temperature},
    )


def overall(
    source: JudgedTournament, weights: Mapping[str, float], parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants over dimensions.

    Raises:
        CannotRate: There is no such rating.
    """
    board, ratings = tournament_ratings.overall(
        source.settlements, weights, parameters, source.roster
    )
    notes = (*notes_of(source), weights_note(ratings), *missing_notes(board, ratings))
    shares: dict[str, Json] = {part.dimension: part.share for part in ratings.parts}
    facts = {**facts_of(source), "weights": shares}
    return bt_table([board], parameters, notes=notes, facts=facts, zeros=[ratings.zeros()])


def controlled(
    source: JudgedTournament, features: Sequence[str], parameters: BradleyTerryParameters
) -> Table:
    """Rate a tournament's entrants as if all wrote alike.

    Raises:
        CannotRate: There is no such rating.
    """
    found = tournament_ratings.style_controlled(
        source.settlements, features, parameters, source.roster
    )
    coefficients: dict[str, Json] = {
        board.name: [each._asdict() for each in ratings.coefficients] for board, ratings in found
    }
    notes = (
        *notes_of(source),
        *(
            coefficient_note(board, each)
            for board, ratings in found
            for each in ratings.coefficients
        ),
    )
    facts = {**facts_of(source), "coefficients": coefficients}
    return bt_table([board for board, _ in found], parameters, notes=notes, facts=facts)


def battles_by_dimension(
    source: JudgedTournament, temperature: float | None
) -> Mapping[Dimension, Battles]:
    """Return a tournament's battles by dimension: who won, or at a temperature soft scores."""
    return {
        dimension: settled_battles(group, ties="half")
        if temperature is None
        else scored_orders(source.state, group).soft(temperature)
        for dimension, group in source.settlements.items()
    }


def facts_of(source: JudgedTournament) -> dict[str, Json]:
    """Return who judged, and what became of the pairings."""
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge_id, "accounts": accounts}


@dataclass(frozen=True)
class Imported:
    """A set of battles of others, and the last position that was read."""

    name: str
    battles: BattleTable
    judges: frozenset[str]
    as_of: int

    @property
    def has_preferences(self) -> bool:
        """Say whether a judge told how probably one is better."""
        return not np.isnan(self.battles.pref[~self.battles.is_human]).all()

    def read_by(self, softness: Softness) -> "Imported":
        """Return the battles with preferences as they are to be read."""
        if softness.temperature is None:
            return self
        read = self.battles.at_temperature(softness.temperature, made_at=softness.made_at)
        return replace(self, battles=read)

    def notes(self, softness: Softness) -> list[str]:
        """Say what battles there are, and how they were read."""
        note = imported_note(self.name, self.battles, soft=softness.is_soft)
        if softness.temperature is None:
            return [note]
        made_at = softness.made_at if self.has_preferences else None
        return [note, marks_note(softness.temperature, made_at)]


def among_others(
    source: JudgedTournament,
    asked: Asked,
    name: str,
    parameters: BradleyTerryParameters,
    softness: Softness,
) -> Table:
    """Rate a tournament's entrants together with those of imported battles.

    Args:
        source: The tournament.
        asked: As of which position both are read.
        name: The set of imported battles.
        parameters: Of the ratings.
        softness: How marks and preferences are read.

    Raises:
        ConfigurationError: No such battles were imported.
        CannotRate: There is no such rating.
    """
    imported, roster = imported_set(asked, name).read_by(softness), source.roster
    rated = {
        dimension: rate_with_anchors(imported.battles, parameters, battles, soft=softness.is_soft)
        for dimension, battles in battles_by_dimension(source, softness.temperature).items()
    }
    boards = [board_of(dimension, each.ratings, roster) for dimension, each in rated.items()]
    return bt_table(
        boards,
        parameters,
        notes=(
            *notes_of(source),
            *imported.notes(softness),
            *(among_note(dimension, each) for dimension, each in rated.items()),
        ),
        facts={
            **facts_of(source),
            **softness.facts,
            "as_of": imported.as_of,
            "battles": name,
            "mae": {dimension: each.mae for dimension, each in rated.items()},
        },
        sources={
            place.entrant: each.source(place.entrant)
            for each, board in zip(rated.values(), boards, strict=True)
            for place in board.rows
        },
    )


def of_imported(
    asked: Asked, name: str, parameters: BradleyTerryParameters, softness: Softness
) -> Table:
    """Rate the entrants of imported battles alone.

    Raises:
        ConfigurationError: No such battles were imported, an option is of a tournament's, or there
            is nothing to read at a temperature.
        CannotRate: There is no such rating.
    """
    require_no_tournament(asked)
    imported = imported_set(asked, name).read_by(softness)
    if softness.temperature is not None and not imported.has_preferences:
        raise ConfigurationError([f"--temperature: no judge's preference is among {name!r}"])
    notes = imported.notes(softness)
    facts: dict[str, Json] = {**softness.facts, "battles": name, "as_of": imported.as_of}
    among = rate_with_anchors(imported.battles, parameters, soft=softness.is_soft)
    board = board_of(name, among.ratings)
    is_judged = not imported.battles.is_human.all()
    return bt_table(
        [board],
        parameters,
        notes=(*notes, among_note(name, among)) if is_judged else notes,
        facts={**facts, "mae": {name: among.mae}} if is_judged else facts,
        sources={place.entrant: among.source(place.entrant) for place in board.rows},
    )


def imported_set(asked: Asked, name: str) -> Imported:
    """Read a set of imported battles.

    Raises:
        ConfigurationError: There is no such set.
    """
    events, as_of = read_set(asked, name)
    judges = {judge for event in events for judge in event.judges.values if judge is not None}
    return Imported(name, table_of(events), frozenset(judges), as_of)
