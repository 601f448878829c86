"""The results of a run, from which every artifact is written: settlements and ratings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from ledger.events.ratings import Publication
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension
from projections.battles.columns import Battles, battles_of
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings, standings
from projections.ratings.tournament import by_dimension as rated_by_dimension
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.tournament.state import Tournament
from projections.tournament.waves import widening_of
from projections.verdicts.policies import Rule


@dataclass(frozen=True)
class Results:
    """A run's settlements with their texts, and its ratings, by dimension in order.

    Ratings by Elo, which take longest to compute, are computed when somebody looks at them.
    """

    tournament: Tournament
    publication: Publication
    judge: JudgeSettings
    settlements: Mapping[Dimension, tuple[Settlement, ...]]
    comparisons: Mapping[Dimension, Battles]
    boards: tuple[Leaderboard, ...]  # by Bradley-Terry

    @cached_property
    def standings(self) -> Mapping[Dimension, Standings]:
        """The standings by Elo."""
        terms = self.publication.terms
        return {
            dimension: standings(dimension, group, terms.entrants, terms.elo)
            for dimension, group in self.comparisons.items()
        }


def results_of(tournament: Tournament, publication: Publication) -> Results:
    """Settle the pairings of a publication and compute its ratings."""
    terms = publication.terms
    judge = tournament.judge(terms.judge)
    settled = settle(tournament, frozenset(terms.prompts), judge, Rule(policy=terms.policy))
    if terms.rated_by == "outcomes":
        settled = tuple(each._replace(said=()) for each in settled)
    return rated_results(tournament, publication, judge, by_dimension(tournament, settled))


def rated_results(
    tournament: Tournament,
    publication: Publication,
    judge: JudgeSettings,
    groups: Mapping[Dimension, tuple[Settlement, ...]],
) -> Results:
    """Compute the ratings of settlements, by the terms of a publication."""
    terms = publication.terms
    cluster = attrgetter("cluster" if terms.rated_by == "verdicts" else "prompt_id")
    comparisons = {
        dimension: battles_of(group, cluster, widening=widening_of(tournament, judge, dimension))
        for dimension, group in groups.items()
    }
    boards = rated_by_dimension(comparisons, terms.bradley_terry, terms.entrants)
    return Results(tournament, publication, judge, groups, comparisons, boards)
