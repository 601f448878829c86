"""The tables of `tourney project bt`: by dimension, overall, style-controlled, with imports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commands.cli.project.bt_options import SoftScoring
from commands.cli.shared.reading import Selection, notes_of, read_set, require_no_tournament
from commands.cli.tables.bradley_terry import (
    among_note,
    bt_table,
    coefficient_note,
    imported_note,
    missing_notes,
    soft_scores_note,
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
    """Rate a tournament's entrants on each dimension; a temperature turns scores into soft scores.

    Raises:
        ConfigurationError: The anchor is not an entrant.
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
        notes=(*notes_of(source), soft_scores_note(temperature)),
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
    """Rate a tournament's entrants with control for style features.

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
    """Return a tournament's battles by dimension: outcomes, or soft scores at a temperature."""
    return {
        dimension: settled_battles(group, ties="half")
        if temperature is None
        else scored_orders(source.state, group).soft(temperature)
        for dimension, group in source.settlements.items()
    }


def facts_of(source: JudgedTournament) -> dict[str, Json]:
    """Return the judge, and how many pairs have which outcome, for JSON."""
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge_id, "accounts": accounts}


@dataclass(frozen=True)
class SelectedSet:
    """An imported set of battles, and the last position read."""

    name: str
    battles: BattleTable
    judges: frozenset[str]
    as_of: int

    @property
    def has_preferences(self) -> bool:
        """Return whether a judge gave preferences."""
        return not np.isnan(self.battles.pref[~self.battles.is_human]).all()

    def scored_by(self, scoring: SoftScoring) -> "SelectedSet":
        """Return the battles with their preferences at another temperature."""
        if scoring.temperature is None:
            return self
        read = self.battles.at_temperature(scoring.temperature, made_at=scoring.made_at)
        return replace(self, battles=read)

    def notes(self, scoring: SoftScoring) -> list[str]:
        """Return the notes on what the set holds, and on how it is scored."""
        note = imported_note(self.name, self.battles, soft=scoring.is_soft)
        if scoring.temperature is None:
            return [note]
        made_at = scoring.made_at if self.has_preferences else None
        return [note, soft_scores_note(scoring.temperature, made_at)]


def with_imported(
    source: JudgedTournament,
    selection: Selection,
    name: str,
    parameters: BradleyTerryParameters,
    scoring: SoftScoring,
) -> Table:
    """Rate a tournament's entrants together with those of imported battles.

    Args:
        source: The tournament.
        selection: Gives the position up to which both are read.
        name: The set of imported battles.
        parameters: Of the ratings.
        scoring: How scores and preferences count.

    Raises:
        ConfigurationError: No such battles were imported.
        CannotRate: There is no such rating.
    """
    imported, roster = imported_set(selection, name).scored_by(scoring), source.roster
    rated = {
        dimension: rate_with_anchors(imported.battles, parameters, battles, soft=scoring.is_soft)
        for dimension, battles in battles_by_dimension(source, scoring.temperature).items()
    }
    boards = [board_of(dimension, each.ratings, roster) for dimension, each in rated.items()]
    return bt_table(
        boards,
        parameters,
        notes=(
            *notes_of(source),
            *imported.notes(scoring),
            *(among_note(dimension, each) for dimension, each in rated.items()),
        ),
        facts={
            **facts_of(source),
            **scoring.facts,
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
    selection: Selection, name: str, parameters: BradleyTerryParameters, scoring: SoftScoring
) -> Table:
    """Rate the entrants of imported battles alone.

    Raises:
        ConfigurationError: There is no such set, an option applies to tournaments only, or the set
            has no preferences for a temperature.
        CannotRate: There is no such rating.
    """
    require_no_tournament(selection)
    imported = imported_set(selection, name).scored_by(scoring)
    if scoring.temperature is not None and not imported.has_preferences:
        raise ConfigurationError([f"--temperature: {name!r} has no judge's preferences"])
    notes = imported.notes(scoring)
    facts: dict[str, Json] = {**scoring.facts, "battles": name, "as_of": imported.as_of}
    among = rate_with_anchors(imported.battles, parameters, soft=scoring.is_soft)
    board = board_of(name, among.ratings)
    is_judged = not imported.battles.is_human.all()
    return bt_table(
        [board],
        parameters,
        notes=(*notes, among_note(name, among)) if is_judged else notes,
        facts={**facts, "mae": {name: among.mae}} if is_judged else facts,
        sources={place.entrant: among.source(place.entrant) for place in board.rows},
    )


def imported_set(selection: Selection, name: str) -> SelectedSet:
    """Read a set of imported battles.

    Raises:
        ConfigurationError: There is no such set.
    """
    events, as_of = read_set(selection, name)
    judges = {judge for event in events for judge in event.judges.values if judge is not None}
    return SelectedSet(name, table_of(events), frozenset(judges), as_of)
