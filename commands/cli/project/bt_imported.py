"""Bradley-Terry ratings of imported battles: alone, corrected, or with a tournament's."""

import numpy as np

from commands.cli.project.bt_boards import RatedBoards, battles_by_dimension, facts_of
from commands.cli.project.bt_options import SoftOptions
from commands.cli.shared.imported_set import read_set
from commands.cli.shared.reading import Selection, notes_of
from commands.cli.tables.ratings.bradley_terry import notes as said
from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet
from commands.runs.judged_tournament import JudgedTournament
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet
from projections.battles.vote_sampling import sampling_of
from projections.battles.voted import with_votes
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import board_of
from projections.ratings.prediction_powered import rate_with_votes


def with_imported(
    source: JudgedTournament,
    selection: Selection,
    name: str,
    parameters: BradleyTerryParameters,
    scoring: SoftOptions,
) -> RatedBoards:
    """Rate a tournament's entrants together with those of imported battles, as of one position.

    Raises:
        ConfigurationError: No such battles were imported.
        CannotRate: There is no such rating.
    """
    imported = read_set(selection, name)
    battles = scoring.applied_to(imported.battles)
    own = battles_by_dimension(source, parameters.ties, scoring.temperature)
    rated = {
        dimension: rate_with_anchors(
            battles, parameters, each, soft=scoring.is_soft, same=source.state.same_texts
        )
        for dimension, each in own.items()
    }
    boards = [board_of(dimension, each.ratings, source.roster) for dimension, each in rated.items()]
    return RatedBoards(
        boards,
        parameters,
        notes=(
            *notes_of(source),
            *_imported_notes(name, battles, scoring),
            *(said.among_note(dimension, each) for dimension, each in rated.items()),
        ),
        facts={
            **facts_of(source),
            **scoring._asdict(),
            "as_of": imported.as_of,
            "battles": name,
            "mae": {dimension: each.mae for dimension, each in rated.items()},
        },
        sources={
            place.entrant: imported.source_of(place.entrant, each.source(place.entrant))
            for each, board in zip(rated.values(), boards, strict=True)
            for place in board.rows
        },
    )


def of_imported(
    imported: SelectedSet, parameters: BradleyTerryParameters, scoring: SoftOptions
) -> RatedBoards:
    """Rate the entrants of imported battles alone."""
    name = imported.name
    battles = scoring.applied_to(imported.battles)
    if scoring.temperature is not None and not _has_preferences(battles):
        raise ConfigurationError([f"--temperature: {name!r} has no judge's preferences"])
    notes = [*imported.selected_by, *_imported_notes(name, battles, scoring)]
    facts: dict[str, Json] = {**scoring._asdict(), **imported.facts}
    among = rate_with_anchors(battles, parameters, soft=scoring.is_soft)
    if not battles.is_human.all():
        notes.append(said.among_note(name, among))
        facts["mae"] = {name: among.mae}
    board = board_of(name, among.ratings)
    sources = {
        place.entrant: imported.source_of(place.entrant, among.source(place.entrant))
        for place in board.rows
    }
    return RatedBoards([board], parameters, notes=notes, facts=facts, sources=sources)


def _imported_notes(name: str, battles: BattlesOfSet, scoring: SoftOptions) -> list[str]:
    """Return the notes on what a set holds, and on how it is scored."""
    note = said.imported_note(name, battles, soft=scoring.is_soft)
    if scoring.temperature is None:
        return [note]
    made_at = scoring.made_at if _has_preferences(battles) else None
    return [note, said.soft_scores_note(scoring.temperature, made_at)]


def _has_preferences(battles: BattlesOfSet) -> bool:
    """Return whether a judge gave preferences."""
    return not np.isnan(battles.pref[~battles.is_human]).all()


def corrected_set(
    imported: SelectedSet,
    parameters: BradleyTerryParameters,
    scoring: SoftOptions,
    votes: Battles,
    truth: str,
) -> RatedBoards:
    """Rate the entrants of an imported set by its judge, corrected by the votes of another."""
    name = imported.name
    battles = scoring.applied_to(imported.battles.take(~imported.battles.is_human))
    judged = with_votes(battles.rated(soft=scoring.is_soft), votes)
    found, sampled = {name: rate_with_votes(judged, parameters)}, {name: sampling_of(judged)}
    notes = _imported_notes(name, battles, scoring)
    facts = {**scoring._asdict(), **imported.facts, "truth": truth}
    return RatedBoards(
        [board_of(name, found[name].ratings)],
        parameters,
        notes=(
            *imported.selected_by,
            *notes,
            *said.truth_notes(name, found[name], sampled[name], truth),
        ),
        facts=facts | said.truth_facts(found, sampled),
    )
