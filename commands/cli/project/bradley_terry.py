"""`tourney project bt`: Bradley-Terry ratings of a tournament, of imported battles, or of both.

With soft scores, which say by how much a response won, they are JudgeArena's soft Elo.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from commands.cli.project import bt_options
from commands.cli.project.bt_boards import RatedBoards, battles_by_dimension, facts_of
from commands.cli.project.bt_imported import corrected_set, of_imported, with_imported
from commands.cli.project.reliability import fitted_temperature
from commands.cli.shared.imported_set import (
    SetOptions,
    human_set,
    read_set,
    require_no_tournament,
    votes_of,
    votes_on_record,
)
from commands.cli.shared.reading import Selection, notes_of, pinned, read_verdicts
from commands.cli.shared.views import table_command, with_source
from commands.cli.tables.ratings.bradley_terry import notes as said
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import require_anchor
from ledger.events.imports import BattlesImported
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battles.columns import Battles
from projections.battles.settled import BY_SCORES
from projections.battles.vote_sampling import VoteSampling, sampling_of
from projections.battles.voted import judged_battles, with_votes
from projections.ratings import tournament as tournament_ratings
from projections.ratings.bradley_terry.leaderboard import board_of, leaderboard
from projections.ratings.prediction_powered import CorrectedRatings, rate_with_votes
from projections.tournament.settlement import Settlement
from projections.verdicts.policies import RECORDED


@table_command
def bt(
    selection: Selection,
    model: bt_options.ModelOptions,
    kind: bt_options.TableKind,
    soft: bt_options.SoftOptions,
    pairwise: bt_options.PairOptions,
    chosen: SetOptions,
) -> Table:
    """Compute Bradley-Terry ratings. Options override the recorded settings.

    Example: tourney project bt --ties davidson
    """
    kind.require_consistent(soft, chosen.name)
    where = chosen.kept
    if kind.fit_temperature is not None:
        _require_nothing_else(selection, (model, soft, pairwise), kind)
        return fitted_temperature(selection, chosen, kind.fit_temperature, soft.made_at)
    if chosen.name is not None:
        require_no_tournament(selection)
        parameters = model.parameters({})
        scoring = soft.settled(parameters.ties)
        imported = read_set(selection, chosen.name, where, chosen.unread)
        if kind.truth is None:
            return of_imported(imported, parameters, scoring).table(pairwise)
        votes = votes_of(selection, kind.truth, "--truth")
        rated = corrected_set(imported, parameters, scoring, votes, kind.truth)
        return rated.table(pairwise)
    if soft.temperature is not None:
        _require_scores(selection, is_plain=kind.overall_by is None and kind.control is None)
    selection = pinned(selection)
    source = read_verdicts(selection, settles_only=soft.temperature is None)
    parameters = model.parameters(source.settings("bradley_terry"))
    scoring = soft.settled(parameters.ties)
    rated = _rated(source, selection, kind, parameters, scoring)
    return with_source(rated.table(pairwise), source)


def _require_nothing_else(
    selection: Selection,
    options: tuple[bt_options.ModelOptions, bt_options.SoftOptions, bt_options.PairOptions],
    kind: bt_options.TableKind,
) -> None:
    """Refuse options of ratings where a temperature is fitted."""
    model, soft, pairwise = options
    chosen = (*model, soft.prefs, soft.temperature, pairwise.adjust, selection.diff)
    others = (*chosen, *kind._replace(fit_temperature=None))
    is_ruled = selection.rule not in {RECORDED, BY_SCORES}
    if pairwise.pairs or is_ruled or any(each is not None for each in others):
        fault = "--fit-temperature rates nobody: leave out all other options, but for --made-at"
        raise ConfigurationError([f"{fault} and those that choose what is read"])


def _rated(
    source: JudgedTournament,
    selection: Selection,
    kind: bt_options.TableKind,
    parameters: BradleyTerryParameters,
    scoring: bt_options.SoftOptions,
) -> RatedBoards:
    """Return the chosen ratings of a tournament."""
    if kind.overall_by is not None:
        weights = bt_options.weights_of(kind.overall_by, source.settlements)
        return _overall(source, weights, parameters)
    if kind.control is not None:
        return _controlled(source, bt_options.features_of(kind.control), parameters)
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
    found: dict[str, CorrectedRatings] = {
        name: rate_with_votes(
            with_votes(judged_battles(group), votes.battles(name), source.state.same_texts),
            parameters,
        )
        for name, group in source.settlements.items()
    }
    sampled: dict[str, VoteSampling] = {
        name: _sampling_of(group, votes.battles(name), found[name])
        for name, group in source.settlements.items()
    }
    return RatedBoards(
        [board_of(name, each.ratings, source.roster) for name, each in found.items()],
        parameters,
        notes=(
            *notes_of(source),
            *(
                note
                for name, each in found.items()
                for note in said.truth_notes(name, each, sampled[name], truth)
            ),
            *votes.notes,
        ),
        facts=facts_of(source) | {"truth": truth} | said.truth_facts(found, sampled),
    )


def _sampling_of(
    group: Iterable[Settlement], votes: Battles, found: CorrectedRatings
) -> VoteSampling:
    """Compare pairs voted on with all that somebody can be asked about: different responses."""
    asked = (each for each in group if each.match is None or not each.match.is_identical)
    voted = with_votes(judged_battles(asked), votes)
    return sampling_of(voted if voted.n_votes else found.battles)


def _require_random(name: str, votes: Iterable[BattlesImported]) -> None:
    """Require that no pair that people voted on was drawn by disagreement.

    Raises:
        ConfigurationError: Some were, perhaps in a ledger that was merged.
    """
    if any(each.drawn and each.drawn.design != "random" for each in votes):
        what = f"--truth {name!r} has votes on pairs that were chosen because judges disagree"
        remedy = "draw at random: `tourney annotate` without --disagreement"
        raise ConfigurationError([f"{what}, which do not represent the other pairs; {remedy}"])


def _require_scores(selection: Selection, *, is_plain: bool) -> None:
    """Refuse a temperature where no scores of each order are read."""
    if not is_plain:
        raise ConfigurationError(["--temperature works with neither --overall nor --control"])
    if selection.rule != BY_SCORES:
        remedy = f"add --parser {BY_SCORES.parser} --policy {BY_SCORES.policy}"
        raise ConfigurationError([f"--temperature needs a judge's scores in each order: {remedy}"])


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
    found = tournament_ratings.style_controlled(
        source.settlements, features, parameters, source.roster
    )
    effects = [(board, each) for board, ratings in found for each in ratings.coefficients]
    coefficients: dict[str, Json] = {
        board.name: [each._asdict() for each in ratings.coefficients] for board, ratings in found
    }
    return RatedBoards(
        [board for board, _ in found],
        parameters,
        notes=(
            *notes_of(source),
            *(said.coefficient_note(*effect) for effect in effects),
            *(said.left_out_note(*each) for each in found if each.ratings.left_out),
        ),
        facts=facts_of(source) | {"coefficients": coefficients},
    )
