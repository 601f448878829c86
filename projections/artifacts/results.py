"""The results of a run, from which every artifact is written: settlements and ratings."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from ledger.events.ratings import Publication, PublicationTerms
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, PromptId
from projections.battles.columns import Battles, battles_of
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings, standings
from projections.ratings.tournament import by_dimension as rated_by_dimension
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.tournament.state import Tournament
from projections.tournament.waves import widening_of
from projections.verdicts.policies import Rule


class SettledPairs(NamedTuple):
    """Settlements with their texts, of a run or of some of its prompts."""

    tournament: Tournament
    judge: JudgeSettings
    settlements: Mapping[Dimension, tuple[Settlement, ...]]


@dataclass(frozen=True)
class Results:
    """A run's ratings, by dimension in the tournament's order, and what they are computed from."""

    tournament: Tournament
    publication: Publication
    judge: JudgeSettings
    comparisons: Mapping[Dimension, Battles]
    boards: tuple[Leaderboard, ...]  # by Bradley-Terry
    settlements: Mapping[Dimension, tuple[Settlement, ...]] = field(default_factory=dict)
    """With their texts; none where the ratings alone were asked for."""

    @cached_property
    def standings(self) -> Mapping[Dimension, Standings]:
        """The standings by Elo, which take longest to compute."""
        terms = self.publication.terms
        return {
            dimension: standings(dimension, group, terms.entrants, terms.elo)
            for dimension, group in self.comparisons.items()
        }

    @property
    def pairs(self) -> SettledPairs:
        """The settlements alone."""
        return SettledPairs(self.tournament, self.judge, self.settlements)


def results_of(tournament: Tournament, publication: Publication) -> Results:
    """Settle the pairings of a publication and compute its ratings."""
    judge = tournament.judge(publication.terms.judge)
    terms = publication.terms
    groups = settlements_of(tournament, frozenset(terms.prompts), judge, terms)
    return rated_results(tournament, publication, judge, groups)


def settlements_of(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    terms: PublicationTerms,
) -> dict[Dimension, tuple[Settlement, ...]]:
    """Settle the pairings on some prompts as a run publishes them, by dimension."""
    settled = settle(tournament, prompts, judge, Rule(policy=terms.policy))
    if terms.rated_by == "outcomes":
        settled = tuple(settlement._replace(said=()) for settlement in settled)
    return by_dimension(tournament, settled)


def published_comparisons(
    tournament: Tournament,
    judge: JudgeSettings,
    groups: Mapping[Dimension, Iterable[Settlement]],
    terms: PublicationTerms,
) -> dict[Dimension, Battles]:
    """Return settlements in columns, as a run rates them."""
    cluster = attrgetter("cluster" if terms.rated_by == "verdicts" else "prompt_id")
    return {
        dimension: battles_of(group, cluster, widening=widening_of(tournament, judge, dimension))
        for dimension, group in groups.items()
    }


def rated_results(
    tournament: Tournament,
    publication: Publication,
    judge: JudgeSettings,
    groups: Mapping[Dimension, tuple[Settlement, ...]],
) -> Results:
    """Compute the ratings of settlements, by the terms of a publication."""
    comparisons = published_comparisons(tournament, judge, groups, publication.terms)
    return replace(rated_run(tournament, publication, judge, comparisons), settlements=groups)


def rated_run(
    tournament: Tournament,
    publication: Publication,
    judge: JudgeSettings,
    comparisons: Mapping[Dimension, Battles],
) -> Results:
    """Compute ratings by the terms of a publication.

    Those by Elo are computed when somebody looks at the standings.
    """
    terms = publication.terms
    boards = rated_by_dimension(comparisons, terms.bradley_terry, terms.entrants)
    return Results(tournament, publication, judge, comparisons, boards)
