"""The results of a run, from which every artifact is written: settlements and ratings."""

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.events.ratings import Publication
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings, standings
from projections.ratings.tournament import by_dimension as rated_by_dimension
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.policies import Rule


@dataclass(frozen=True)
class Results:
    """A run's settlements and standings, by dimension in the tournament's order."""

    tournament: Tournament
    publication: Publication
    judge: JudgeSettings
    settlements: Mapping[Dimension, tuple[Settlement, ...]]
    standings: Mapping[Dimension, Standings]
    boards: tuple[Leaderboard, ...]  # by Bradley-Terry


def results_of(tournament: Tournament, publication: Publication) -> Results:
    """Settle the pairings of a publication and compute its ratings."""
    terms = publication.terms
    judge = tournament.judge(terms.judge)
    settled = settle(tournament, frozenset(terms.prompts), judge, Rule(policy=terms.policy))
    return rated_results(tournament, publication, judge, by_dimension(tournament, settled))


def rated_results(
    tournament: Tournament,
    publication: Publication,
    judge: JudgeSettings,
    groups: Mapping[Dimension, tuple[Settlement, ...]],
) -> Results:
    """Compute the ratings of settlements, by the terms of a publication."""
    terms = publication.terms
    return Results(
        tournament=tournament,
        publication=publication,
        judge=judge,
        settlements=groups,
        standings={
            dimension: standings(dimension, group, terms.entrants, terms.elo)
            for dimension, group in groups.items()
        },
        boards=rated_by_dimension(groups, terms.bradley_terry, terms.entrants),
    )
