"""Bradley-Terry ratings of a tournament, of imported battles, or of both, with their notes."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from commands.cli.project.bt_options import (
    PairOptions,
    SoftOptions,
    TableKind,
    features_of,
    weights_of,
)
from commands.cli.shared.imported_set import (
    human_set,
    read_set,
    votes_on_record,
)
from commands.cli.shared.reading import Selection, notes_of
from commands.cli.tables import bradley_terry as said
from commands.cli.tables.bradley_terry import bt_table, pairs_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.parameters import require_anchor
from ledger.events.imports import BattlesImported
from ledger.events.ratings import BradleyTerryParameters, TieModel
from ledger.identity import Dimension, Json
from projections.battles.columns import Battles, battles_of
from projections.battles.imported import BattlesOfSet
from projections.battles.settled import scored_orders
from projections.battles.vote_sampling import VoteSampling, sampling_of
from projections.battles.voted import judged_battles, with_votes
from projections.ratings import tournament as tournament_ratings
from projections.ratings.bradley_terry.anchors import rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import Leaderboard, board_of, leaderboard
from projections.ratings.bradley_terry.rate import Zero
from projections.ratings.prediction_powered import CorrectedRatings, rate_with_votes
from projections.tournament.compared import account_of
from projections.tournament.settlement import Settlement


class RatedBoards(NamedTuple):
    """Leaderboards with their notes."""

    boards: Sequence[Leaderboard]
    parameters: BradleyTerryParameters
    notes: Sequence[str]
    facts: Mapping[str, Json]
    sources: Mapping[str, str] | None = None  # who judged each entrant's battles
    zeros: Sequence[Sequence[Zero]] | None = None  # the reference of each rating

    def table(self, pairwise: PairOptions) -> Table:
        """Return the table of pairs, or that of ratings."""
        if pairwise.adjustment is None:
            return bt_table(
                self.boards,
                self.parameters,
                notes=self.notes,
                facts=self.facts,
                sources=self.sources,
                zeros=self.zeros,
            )
        return pairs_table(
            self.boards,
            self.parameters,
            pairwise.adjustment,
            notes=self.notes,
            facts=self.facts,
        )


def battles_by_dimension(
    source: JudgedTournament, ties: TieModel, temperature: float | None
) -> Mapping[Dimension, Battles]:
    """Return a tournament's battles by dimension: verdicts, or soft scores at a temperature."""
    return {
        dimension: battles_of(group).by_verdicts(ties)
        if temperature is None
        else scored_orders(source.state, group).soft(temperature).grouped(source.state.same_texts)
        for dimension, group in source.settlements.items()
    }


def facts_of(source: JudgedTournament) -> dict[str, Json]:
    """Return the judge, and how many pairs have which outcome, for JSON."""
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge_id, "accounts": accounts}


def ratings_of(
    source: JudgedTournament,
    selection: Selection,
    kind: TableKind,
    parameters: BradleyTerryParameters,
    scoring: SoftOptions,
) -> RatedBoards:
    """Return the chosen ratings of a tournament."""
    if kind.overall_by is not None:
        weights = weights_of(kind.overall_by, source.settlements)
        return _overall(source, weights, parameters)
    if kind.control is not None:
        return _controlled(source, features_of(kind.control), parameters)
    if kind.with_set is not None:
        return with_imported(source, selection, kind.with_set, parameters, scoring)
    if kind.truth is not None:
        return _corrected(source, selection, kind.truth, parameters)
    return _by_dimension(source, parameters, scoring.temperature)


def _corrected(
    source: JudgedTournament,
    selection: Selection,
    truth: str,
    parameters: BradleyTerryParameters,
) -> RatedBoards:
    """Rate the entrants on each dimension by the judge, corrected by people's votes."""
    require_anchor(parameters, source.roster)
    votes = votes_on_record(source, human_set(selection, truth, "--truth"), "--truth")
    _require_random(truth, chain.from_iterable(votes.on[name] for name in source.settlements))
    corrected: dict[str, CorrectedRatings] = {
        name: rate_with_votes(
            with_votes(judged_battles(group), votes.battles(name), source.state.same_texts),
            parameters,
        )
        for name, group in source.settlements.items()
    }
    sampled: dict[str, VoteSampling] = {
        name: _sampling_of(group, votes.battles(name), corrected[name])
        for name, group in source.settlements.items()
    }
    return RatedBoards(
        [board_of(name, rated.ratings, source.roster) for name, rated in corrected.items()],
        parameters,
        notes=(
            *notes_of(source),
            *(
                note
                for name, rated in corrected.items()
                for note in said.truth_notes(name, rated, sampled[name], truth)
            ),
            *votes.notes,
        ),
        facts=facts_of(source) | {"truth": truth} | said.truth_facts(corrected, sampled),
    )


def _sampling_of(
    group: Iterable[Settlement], votes: Battles, found: CorrectedRatings
) -> VoteSampling:
    """Compare pairs voted on with all that somebody can be asked about: different responses."""
    asked = (pair for pair in group if pair.match is None or not pair.match.is_identical)
    voted = with_votes(judged_battles(asked), votes)
    return sampling_of(voted if voted.n_votes else found.battles)


def _require_random(name: str, votes: Iterable[BattlesImported]) -> None:
    """Require that no pair that people voted on was drawn by disagreement.

    Raises:
        ConfigurationError: Some were, perhaps in a ledger that was merged.
    """
    if any(vote.drawn and vote.drawn.design != "random" for vote in votes):
        what = f"--truth {name!r} has votes on pairs that were chosen because judges disagree"
        remedy = "draw at random: `tourney annotate` without --disagreement"
        raise ConfigurationError([f"{what}, which do not represent the other pairs; {remedy}"])


def _by_dimension(
    source: JudgedTournament, parameters: BradleyTerryParameters, temperature: float | None
) -> RatedBoards:
    """Rate the entrants on each dimension; a temperature turns scores into soft scores."""
    require_anchor(parameters, source.roster)
    boards = [
        leaderboard(dimension, battles, parameters, source.roster)
        for dimension, battles in battles_by_dimension(source, parameters.ties, temperature).items()
    ]
    notes, facts = notes_of(source), facts_of(source)
    if temperature is not None:
        notes = (*notes, said.soft_scores_note(temperature))
        facts["temperature"] = temperature
    return RatedBoards(boards, parameters, notes, facts)


def _overall(
    source: JudgedTournament, weights: Mapping[str, float], parameters: BradleyTerryParameters
) -> RatedBoards:
    """Rate the entrants over dimensions."""
    board, ratings = tournament_ratings.overall(
        source.settlements, weights, parameters, source.roster
    )
    about = (said.weights_note(ratings), *said.missing_notes(board, ratings))
    shares: dict[str, Json] = {part.dimension: part.share for part in ratings.parts}
    return RatedBoards(
        [board],
        parameters,
        notes=(*notes_of(source), *about),
        facts=facts_of(source) | {"weights": shares},
        zeros=[ratings.zeros()],
    )


def _controlled(
    source: JudgedTournament, features: Sequence[str], parameters: BradleyTerryParameters
) -> RatedBoards:
    """Rate the entrants with control for style features."""
    controlled = tournament_ratings.style_controlled(
        source.settlements, features, parameters, source.roster
    )
    effects = [(board, effect) for board, ratings in controlled for effect in ratings.coefficients]
    coefficients: dict[str, Json] = {
        board.name: [effect._asdict() for effect in ratings.coefficients]
        for board, ratings in controlled
    }
    return RatedBoards(
        [board for board, _ in controlled],
        parameters,
        notes=(
            *notes_of(source),
            *(said.coefficient_note(*effect) for effect in effects),
            *(said.left_out_note(*rated) for rated in controlled if rated.ratings.left_out),
        ),
        facts=facts_of(source) | {"coefficients": coefficients},
    )


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
            battles, parameters, judged, soft=scoring.is_soft, same=source.state.same_texts
        )
        for dimension, judged in own.items()
    }
    boards = [board_of(name, among.ratings, source.roster) for name, among in rated.items()]
    return RatedBoards(
        boards,
        parameters,
        notes=(
            *notes_of(source),
            *_imported_notes(name, battles, scoring),
            *(said.among_note(dimension, among) for dimension, among in rated.items()),
        ),
        facts={
            **facts_of(source),
            **scoring._asdict(),
            "as_of": imported.as_of,
            "battles": name,
            "mae": {dimension: among.mae for dimension, among in rated.items()},
        },
        sources={
            place.entrant: imported.source_of(place.entrant, among.source(place.entrant))
            for among, board in zip(rated.values(), boards, strict=True)
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
