"""`tourney project bt`: Bradley-Terry ratings of a tournament, of imported battles, or of both.

With soft scores, which say by how much a response won, they are JudgeArena's soft Elo.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from commands.cli.project import bt_options
from commands.cli.shared.imported_set import read_set, require_no_tournament
from commands.cli.shared.reading import Selection, notes_of, pinned, read_verdicts
from commands.cli.shared.views import table_command, with_source
from commands.cli.tables import bradley_terry as tables
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import bradley_terry_settings, require_anchor
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Dimension, Json
from projections.battles.columns import Battles
from projections.battles.imported import BattleTable
from projections.battles.settled import BY_SCORES, scored_orders, settled_battles
from projections.ratings import tournament as tournament_ratings
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import board_of, leaderboard
from projections.tournament.settlement import account_of


@table_command
def bt(
    selection: Selection,
    model: bt_options.ModelOptions,
    kind: bt_options.TableKind,
    soft: bt_options.SoftOptions,
) -> Table:
    """Compute Bradley-Terry ratings. Options override the recorded settings.

    Example: tourney project bt --unit prompts
    """
    kind.require_consistent(soft)
    if kind.name is not None:
        parameters = model.parameters({})
        return _of_imported(selection, kind.name, parameters, soft.settled(parameters.ties))
    if soft.temperature is not None:
        _require_scores(selection, is_plain=kind.overall_by is None and kind.control is None)
    selection = pinned(selection)
    source = read_verdicts(selection)
    parameters = model.parameters(bradley_terry_settings(source.state))
    scoring = soft.settled(parameters.ties)
    return with_source(_rated(source, selection, kind, parameters, scoring), source)


def _rated(
    source: JudgedTournament,
    selection: Selection,
    kind: bt_options.TableKind,
    parameters: BradleyTerryParameters,
    scoring: bt_options.SoftOptions,
) -> Table:
    """Return the chosen table of a tournament."""
    if kind.overall_by is not None:
        weights = bt_options.weights_of(kind.overall_by, source.settlements)
        return _overall(source, weights, parameters)
    if kind.control is not None:
        return _controlled(source, bt_options.features_of(kind.control), parameters)
    if kind.with_set is not None:
        return with_imported(source, selection, kind.with_set, parameters, scoring)
    return _by_dimension(source, parameters, scoring.temperature)


def _require_scores(selection: Selection, *, is_plain: bool) -> None:
    """Refuse a temperature where no scores of each order are read."""
    if not is_plain:
        raise ConfigurationError(["--temperature works with neither --overall nor --control"])
    if selection.rule != BY_SCORES:
        remedy = f"add --parser {BY_SCORES.parser} --policy {BY_SCORES.policy}"
        raise ConfigurationError([f"--temperature needs a judge's scores in each order: {remedy}"])


def _by_dimension(
    source: JudgedTournament, parameters: BradleyTerryParameters, temperature: float | None
) -> Table:
    """Rate the entrants on each dimension; a temperature turns scores into soft scores."""
    require_anchor(parameters, source.roster)
    boards = [
        leaderboard(dimension, battles, parameters, source.roster)
        for dimension, battles in _battles_by_dimension(source, temperature).items()
    ]
    notes, facts = notes_of(source), _facts_of(source)
    if temperature is not None:
        notes = (*notes, tables.soft_scores_note(temperature))
        facts["temperature"] = temperature
    return tables.bt_table(boards, parameters, notes=notes, facts=facts)


def _overall(
    source: JudgedTournament, weights: Mapping[str, float], parameters: BradleyTerryParameters
) -> Table:
    """Rate the entrants over dimensions."""
    board, ratings = tournament_ratings.overall(
        source.settlements, weights, parameters, source.roster
    )
    weighed = (tables.weights_note(ratings), *tables.missing_notes(board, ratings))
    shares: dict[str, Json] = {part.dimension: part.share for part in ratings.parts}
    return tables.bt_table(
        [board],
        parameters,
        notes=(*notes_of(source), *weighed),
        facts=_facts_of(source) | {"weights": shares},
        zeros=[ratings.zeros()],
    )


def _controlled(
    source: JudgedTournament, features: Sequence[str], parameters: BradleyTerryParameters
) -> Table:
    """Rate the entrants with control for style features."""
    found = tournament_ratings.style_controlled(
        source.settlements, features, parameters, source.roster
    )
    effects = [(board, each) for board, ratings in found for each in ratings.coefficients]
    coefficients: dict[str, Json] = {
        board.name: [each._asdict() for each in ratings.coefficients] for board, ratings in found
    }
    return tables.bt_table(
        [board for board, _ in found],
        parameters,
        notes=(
            *notes_of(source),
            *(tables.coefficient_note(*effect) for effect in effects),
            *(tables.left_out_note(*each) for each in found if each.ratings.left_out),
        ),
        facts=_facts_of(source) | {"coefficients": coefficients},
    )


def _battles_by_dimension(
    source: JudgedTournament, temperature: float | None
) -> Mapping[Dimension, Battles]:
    """Return a tournament's battles by dimension: outcomes, or soft scores at a temperature."""
    return {
        dimension: settled_battles(group, ties="half")
        if temperature is None
        else scored_orders(source.state, group).soft(temperature)
        for dimension, group in source.settlements.items()
    }


def _facts_of(source: JudgedTournament) -> dict[str, Json]:
    """Return the judge, and how many pairs have which outcome, for JSON."""
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge_id, "accounts": accounts}


def with_imported(
    source: JudgedTournament,
    selection: Selection,
    name: str,
    parameters: BradleyTerryParameters,
    scoring: bt_options.SoftOptions,
) -> Table:
    """Rate a tournament's entrants together with those of imported battles, as of one position.

    Raises:
        ConfigurationError: No such battles were imported.
        CannotRate: There is no such rating.
    """
    imported = read_set(selection, name)
    battles = scoring.applied_to(imported.battles)
    rated = {
        dimension: rate_with_anchors(battles, parameters, own, soft=scoring.is_soft)
        for dimension, own in _battles_by_dimension(source, scoring.temperature).items()
    }
    boards = [board_of(dimension, each.ratings, source.roster) for dimension, each in rated.items()]
    return tables.bt_table(
        boards,
        parameters,
        notes=(
            *notes_of(source),
            *_imported_notes(name, battles, scoring),
            *(tables.among_note(dimension, each) for dimension, each in rated.items()),
        ),
        facts={
            **_facts_of(source),
            **scoring._asdict(),
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


def _of_imported(
    selection: Selection,
    name: str,
    parameters: BradleyTerryParameters,
    scoring: bt_options.SoftOptions,
) -> Table:
    """Rate the entrants of imported battles alone."""
    require_no_tournament(selection)
    imported = read_set(selection, name)
    battles = scoring.applied_to(imported.battles)
    if scoring.temperature is not None and not _has_preferences(battles):
        raise ConfigurationError([f"--temperature: {name!r} has no judge's preferences"])
    notes = _imported_notes(name, battles, scoring)
    facts: dict[str, Json] = {**scoring._asdict(), "battles": name, "as_of": imported.as_of}
    among = rate_with_anchors(battles, parameters, soft=scoring.is_soft)
    if not battles.is_human.all():
        notes.append(tables.among_note(name, among))
        facts["mae"] = {name: among.mae}
    board = board_of(name, among.ratings)
    sources = {place.entrant: among.source(place.entrant) for place in board.rows}
    return tables.bt_table([board], parameters, notes=notes, facts=facts, sources=sources)


def _imported_notes(name: str, battles: BattleTable, scoring: bt_options.SoftOptions) -> list[str]:
    """Return the notes on what a set holds, and on how it is scored."""
    note = tables.imported_note(name, battles, soft=scoring.is_soft)
    if scoring.temperature is None:
        return [note]
    made_at = scoring.made_at if _has_preferences(battles) else None
    return [note, tables.soft_scores_note(scoring.temperature, made_at)]


def _has_preferences(battles: BattleTable) -> bool:
    """Return whether a judge gave preferences."""
    return not np.isnan(battles.pref[~battles.is_human]).all()
