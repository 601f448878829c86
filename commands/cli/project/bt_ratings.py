"""Bradley-Terry ratings of a tournament, of imported battles, or of both, with their notes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from commands.cli.project.reliability import temperature_table
from commands.cli.shared.reading import (
    by_people,
    chosen_set,
    human_set,
    notes_of,
    outdated_note,
    read_set,
    read_verdicts,
    votes_on_record,
    with_source,
)
from commands.cli.shared.selection import Selection
from commands.cli.tables import bradley_terry as said
from commands.cli.tables.bradley_terry import Corrected, RatedBoards
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.parameters import require_anchor
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json
from projections.battles.columns import Battles
from projections.battles.imported import BattlesOfSet, battles_of_set, scored_preferences
from projections.battles.soft_scores import TEMPERATURE, calibrate_judge, scored_orders
from projections.battles.voted import (
    VoteSampling,
    both_judged,
    judged_battles,
    sampling_of,
    with_votes,
)
from projections.ratings import tournament as tournament_ratings
from projections.ratings.bradley_terry.anchors import AnchoredRatings, rate_with_anchors
from projections.ratings.bradley_terry.leaderboard import Leaderboard, board_of, leaderboard
from projections.ratings.prediction_powered import CorrectedRatings, rate_with_votes
from projections.tournament.bank import outside_share, share_of
from projections.tournament.settlement import Settlement, account_of

Prefs: TypeAlias = Literal["soft", "hard"]
_FIT: Final = "--fit-temperature"


class HowRated(NamedTuple):
    """How battles are rated; a temperature turns a judge's scores into soft scores."""

    parameters: BradleyTerryParameters
    prefs: Prefs = "soft"  # whether preferences count, or only who won
    temperature: float | None = None

    @property
    def facts(self) -> dict[str, Json]:
        """The fields of JSON that say how battles are scored."""
        made_at = None if self.temperature is None else TEMPERATURE
        return {"prefs": self.prefs, "temperature": self.temperature, "made_at": made_at}

    @property
    def is_soft(self) -> bool:
        """Say whether imported preferences count, not only who won."""
        return self.prefs == "soft"

    def applied_to(self, battles: BattlesOfSet) -> BattlesOfSet:
        """Return battles with their preferences at the temperature."""
        return battles if self.temperature is None else battles.at_temperature(self.temperature)


def how_rated(
    parameters: BradleyTerryParameters, prefs: Prefs | None, temperature: float | None
) -> HowRated:
    """Return how battles are rated; Davidson's model of ties needs whole outcomes."""
    is_half = parameters.ties == "half"
    chosen: Prefs = prefs or ("soft" if is_half else "hard")
    if chosen == "soft" and not is_half:
        raise ConfigurationError(
            ["--prefs soft cannot be combined with --ties davidson, which needs who won"]
        )
    if temperature is not None and chosen == "hard":
        raise ConfigurationError(
            ["--temperature makes soft scores: leave out --ties davidson and --prefs hard"]
        )
    if temperature is not None and not 0 < temperature < inf:
        raise ConfigurationError([f"--temperature {temperature:g}: a temperature must be above 0"])
    return HowRated(parameters, chosen, temperature)


def by_dimension(source: JudgedTournament, how: HowRated) -> RatedBoards:
    """Rate the entrants on each dimension."""
    parameters = how.parameters
    require_anchor(parameters, source.roster)
    boards = [
        leaderboard(dimension, battles, parameters, source.roster)
        for dimension, battles in _battles(source, how).items()
    ]
    notes, facts = notes_of(source), _facts_of(source)
    if how.temperature is not None:
        notes = (*notes, said.soft_scores_note(how.temperature))
        facts["temperature"] = how.temperature
    return RatedBoards(boards, parameters, notes, facts)


def _battles(source: JudgedTournament, how: HowRated) -> Mapping[Dimension, Battles]:
    """Return a tournament's battles by dimension: verdicts, or soft scores at a temperature."""
    if how.temperature is None:
        return source.rated_battles(how.parameters.ties)
    state = source.state
    soft = {
        name: scored_orders(state, group).soft(how.temperature).grouped(state.same_texts)
        for name, group in source.settlements.items()
    }
    return {name: replace(each, widening=source.widening(name)) for name, each in soft.items()}


def _facts_of(source: JudgedTournament) -> dict[str, Json]:
    """Return the judge, and how many pairs have which outcome, for JSON."""
    groups = source.settlements.items()
    accounts: dict[str, Json] = {name: account_of(group).fields() for name, group in groups}
    return {"judge": source.judge_id, "accounts": accounts}


def overall(
    source: JudgedTournament, weights: Mapping[str, float], parameters: BradleyTerryParameters
) -> RatedBoards:
    """Rate the entrants over dimensions."""
    board, ratings = tournament_ratings.overall(
        source.settlements,
        weights,
        parameters,
        source.roster,
        widening=max(map(source.widening, source.settlements)),
    )
    shares: dict[str, Json] = {part.dimension: part.share for part in ratings.parts}
    return RatedBoards(
        [board],
        parameters,
        (*notes_of(source), said.weights_note(ratings), *said.missing_notes(board, ratings)),
        _facts_of(source) | {"weights": shares},
        zeros=[ratings.zeros()],
    )


def controlled(
    source: JudgedTournament, features: Sequence[str], parameters: BradleyTerryParameters
) -> RatedBoards:
    """Rate the entrants with control for style features."""
    rated = tournament_ratings.style_controlled(
        source.settlements, features, parameters, source.roster, widening=source.widening
    )
    effects = [(board, effect) for board, ratings in rated for effect in ratings.coefficients]
    coefficients: dict[str, Json] = {
        board.name: [effect._asdict() for effect in ratings.coefficients]
        for board, ratings in rated
    }
    return RatedBoards(
        [board for board, _ in rated],
        parameters,
        (
            *notes_of(source),
            *(said.coefficient_note(*effect) for effect in effects),
            *(said.left_out_note(board, ratings) for board, ratings in rated if ratings.left_out),
        ),
        _facts_of(source) | {"coefficients": coefficients},
    )


def corrected(
    source: JudgedTournament, selection: Selection, truth: str, parameters: BradleyTerryParameters
) -> RatedBoards:
    """Rate the entrants on each dimension by the judge, corrected by people's votes."""
    require_anchor(parameters, source.roster)
    votes, n_outdated = votes_on_record(source, human_set(selection, truth, "--truth"), "--truth")
    given = chain.from_iterable(votes[name] for name in source.settlements)
    if any(vote.drawn and vote.drawn.design != "random" for vote in given):
        what = f"--truth {truth!r} has votes on pairs that were chosen because judges disagree"
        remedy = "draw at random: `tourney annotate` without --disagreement"
        raise ConfigurationError([f"{what}, which do not represent the other pairs; {remedy}"])
    found: dict[str, Corrected] = {}
    for name, group in source.settlements.items():
        voted = by_people(battles_of_set(votes[name]))
        judged = with_votes(judged_battles(group), voted, source.state.same_texts)
        rated = _widened(rate_with_votes(judged, parameters), source.widening(name))
        found[name] = Corrected(rated, _sampling_of(group, voted, rated))
    return _corrected(
        found,
        parameters,
        (
            *notes_of(source),
            *said.truth_notes(found, truth),
            *outdated_note(truth, n_outdated),
        ),
        _facts_of(source) | {"truth": truth},
        source.roster,
    )


def _corrected(
    found: Mapping[str, Corrected],
    parameters: BradleyTerryParameters,
    notes: Iterable[str],
    facts: Mapping[str, Json],
    roster: Sequence[str] = (),
) -> RatedBoards:
    boards = [board_of(name, each.rated.ratings, roster) for name, each in found.items()]
    correction: dict[str, Json] = {name: each.facts for name, each in found.items()}
    return RatedBoards(boards, parameters, notes, {**facts, "correction": correction})


def corrected_by_judge(
    source: JudgedTournament, truth: JudgeSettings, parameters: BradleyTerryParameters
) -> RatedBoards:
    """Rate the entrants by the judge, corrected by another that judged some of the prompts."""
    require_anchor(parameters, source.roster)
    state, name = source.state, truth.judge_id
    if source.judge_id in {name, None}:
        fault = f"--truth {name!r} corrects one other judge: name it by --judge"
        others = ", ".join(judge.judge_id for judge in state.panel if judge.judge_id != name)
        raise ConfigurationError([f"{fault}; known: {others}"])
    strong = replace(source, judge=truth)
    found: dict[str, Corrected] = {}
    is_drawn = share_of(state, truth) is not None
    for dimension, group in source.settlements.items():
        battles = both_judged(group, strong.settlements[dimension], state.same_texts)
        rated = _widened(rate_with_votes(battles, parameters), source.widening(dimension))
        is_random = is_drawn and not strong.columns[dimension].account.pending
        sampled = sampling_of(battles, by_prompt=True, is_random=is_random)
        found[dimension] = Corrected(rated, sampled)
    accounts = (
        f"{dimension}, by {name}: {battles.account.sentence()}"
        for dimension, battles in strong.columns.items()
    )
    of_truth = (*accounts, *outside_share(state, truth))
    notes = (*notes_of(source), *of_truth, *said.cascade_notes(found, name))
    return _corrected(found, parameters, notes, _facts_of(source) | {"truth": name}, source.roster)


def _widened(found: CorrectedRatings, by: float) -> CorrectedRatings:
    """Return ratings with wider intervals, since the judge's verdicts were looked at before."""
    return found if by == 1 else found._replace(ratings=found.ratings.widened(by))


def _sampling_of(
    group: Iterable[Settlement], votes: Battles, found: CorrectedRatings
) -> VoteSampling:
    """Compare pairs voted on with all that somebody can be asked about: different responses."""
    asked = (pair for pair in group if pair.match is None or not pair.match.is_identical)
    voted = with_votes(judged_battles(asked), votes)
    return sampling_of(voted if voted.n_votes else found.battles)


def corrected_set(
    imported: SelectedSet, selection: Selection, truth: str, how: HowRated
) -> RatedBoards:
    """Rate the entrants of an imported set by its judge, corrected by the votes of another."""
    votes = by_people(human_set(selection, truth, "--truth").battles)
    battles = how.applied_to(imported.battles.take(~imported.battles.is_human))
    judged = with_votes(battles.rated(soft=how.is_soft), votes)
    found = {imported.name: Corrected(rate_with_votes(judged, how.parameters), sampling_of(judged))}
    notes = (
        *imported.selected_by,
        *_imported_notes(imported.name, battles, how),
        *said.truth_notes(found, truth),
    )
    facts = {**how.facts, **imported.facts, "truth": truth}
    return _corrected(found, how.parameters, notes, facts)


def with_imported(
    source: JudgedTournament, selection: Selection, name: str, how: HowRated
) -> RatedBoards:
    """Rate a tournament's entrants together with those of imported battles, as of one position."""
    imported = read_set(selection, name)
    battles = how.applied_to(imported.battles)
    rated = {
        dimension: rate_with_anchors(
            battles, how.parameters, judged, soft=how.is_soft, same=source.state.same_texts
        )
        for dimension, judged in _battles(source, how).items()
    }
    boards = [board_of(name, among.ratings, source.roster) for name, among in rated.items()]
    sources: dict[str, str] = {}
    for among, board in zip(rated.values(), boards, strict=True):
        sources |= _sources_of(imported, among, board)
    return RatedBoards(
        boards,
        how.parameters,
        (
            *notes_of(source),
            *_imported_notes(name, battles, how),
            *(said.among_note(dimension, among) for dimension, among in rated.items()),
        ),
        {
            **_facts_of(source),
            **how.facts,
            "as_of": imported.as_of,
            "battles": name,
            "mae": {dimension: among.mae for dimension, among in rated.items()},
        },
        sources,
    )


def of_imported(imported: SelectedSet, how: HowRated) -> RatedBoards:
    """Rate the entrants of imported battles alone."""
    name = imported.name
    battles = how.applied_to(imported.battles)
    if how.temperature is not None and not _has_preferences(battles):
        raise ConfigurationError([f"--temperature: {name!r} has no judge's preferences"])
    notes = [*imported.selected_by, *_imported_notes(name, battles, how)]
    facts: dict[str, Json] = {**how.facts, **imported.facts}
    among = rate_with_anchors(battles, how.parameters, soft=how.is_soft)
    if not battles.is_human.all():
        notes.append(said.among_note(name, among))
        facts["mae"] = {name: among.mae}
    board = board_of(name, among.ratings)
    return RatedBoards([board], how.parameters, notes, facts, _sources_of(imported, among, board))


def _sources_of(
    imported: SelectedSet, among: AnchoredRatings, board: Leaderboard
) -> dict[str, str]:
    """Return who rated each entrant."""
    names = (place.entrant for place in board.rows)
    return {name: imported.source_of(name, among.source(name)) for name in names}


def _imported_notes(name: str, battles: BattlesOfSet, how: HowRated) -> list[str]:
    """Return the notes on what a set holds, and on how it is scored."""
    note = said.imported_note(name, battles, soft=how.is_soft)
    if how.temperature is None:
        return [note]
    return [note, said.soft_scores_note(how.temperature, converted=_has_preferences(battles))]


def _has_preferences(battles: BattlesOfSet) -> bool:
    """Say whether a judge gave preferences."""
    return not np.isnan(battles.pref[~battles.is_human]).all()


def fitted_to_set(selection: Selection, against: str) -> Table:
    """Fit the temperature of an imported set's preferences to the human votes of another."""
    judged = chosen_set(selection)
    scored = scored_preferences(judged.battles)
    votes = by_people(human_set(selection, against, _FIT).battles)
    made = f"preferences are taken as made at JudgeArena's temperature {TEMPERATURE}"
    return temperature_table(
        [calibrate_judge(judged.name, scored, votes)],
        notes=[*judged.selected_by, f"{judged.name}: {made}."],
        facts={**judged.facts, "against": against, "made_at": TEMPERATURE},
    )


def fitted_to_votes(selection: Selection, against: str) -> Table:
    """Fit the temperature of a tournament's judge to human votes on the same responses."""
    source = read_verdicts(selection)
    votes, n_outdated = votes_on_record(source, human_set(selection, against, _FIT), _FIT)
    calibrations = [
        calibrate_judge(
            dimension,
            scored_orders(source.state, group),
            by_people(battles_of_set(votes[dimension])),
            source.state.same_texts,
        )
        for dimension, group in source.settlements.items()
    ]
    table = temperature_table(
        calibrations,
        notes=[*notes_of(source), *outdated_note(against, n_outdated)],
        facts={"judge": source.judge_id, "against": against},
    )
    return with_source(table, source)
