"""The views of imported battles in `tourney project bt`: alone, or together with a tournament's."""

from dataclasses import dataclass, replace

import numpy as np

from commands.cli.asked import Asked, Reading, require_no_tournament
from commands.cli.battle_sets import read_set
from commands.cli.bt_views import battles_by_dimension, facts_of, roster_of
from commands.cli.softness import Softness
from commands.errors import ConfigurationError
from commands.tables.bt import bt_table
from commands.tables.bt_notes import among_note, imported_note, marks_note
from commands.tables.table import Table
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battles.imported import BattleTable, table_of
from projections.ratings.bradley_terry.anchors import rate_among
from projections.ratings.bradley_terry.leaderboard import board_of


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
        read = self.battles.read_at(softness.temperature, made_at=softness.made_at)
        return replace(self, battles=read)

    def notes(self, softness: Softness) -> list[str]:
        """Say what battles there are, and how they were read."""
        note = imported_note(self.name, self.battles, soft=softness.is_soft)
        if softness.temperature is None:
            return [note]
        made_at = softness.made_at if self.has_preferences else None
        return [note, marks_note(softness.temperature, made_at)]


def among_others(
    source: Reading, asked: Asked, name: str, parameters: BradleyTerryParameters, softness: Softness
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
    imported, roster = imported_set(asked, name).read_by(softness), roster_of(source)
    rated = {
        dimension: rate_among(imported.battles, parameters, battles, soft=softness.is_soft)
        for dimension, battles in battles_by_dimension(source, softness.temperature).items()
    }
    boards = [board_of(dimension, each.ratings, roster) for dimension, each in rated.items()]
    return bt_table(
        boards,
        parameters,
        notes=(
            *source.notes,
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
            for place in board.places
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
    among = rate_among(imported.battles, parameters, soft=softness.is_soft)
    board = board_of(name, among.ratings)
    is_judged = not imported.battles.is_human.all()
    return bt_table(
        [board],
        parameters,
        notes=(*notes, among_note(name, among)) if is_judged else notes,
        facts={**facts, "mae": {name: among.mae}} if is_judged else facts,
        sources={place.entrant: among.source(place.entrant) for place in board.places},
    )


def imported_set(asked: Asked, name: str) -> Imported:
    """Read a set of imported battles.

    Raises:
        ConfigurationError: There is no such set.
    """
    events, as_of = read_set(asked, name)
    judges = {judge for event in events for judge in event.judges.values if judge is not None}
    return Imported(name, table_of(events), frozenset(judges), as_of)
