"""The results of a run, from which every artifact is written: settlements and ratings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ParamSpec, Protocol, TypeVar

from ledger.events.ratings import Publication
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension
from projections.battles.columns import Battles
from projections.battles.settled import settled_battles
from projections.ratings.bradley_terry.leaderboard import Leaderboard, leaderboard
from projections.ratings.elo.rate import rate
from projections.ratings.standings import Played, Standings, elo_task, standings
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.policies import Rule

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Starter(Protocol):
    """Starts a computation."""

    def __call__(
        self,
        compute: Callable[Parameters, Result],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Callable[[], Result]:
        """Return what returns its result, and waits for it until then."""


@dataclass(frozen=True)
class Results:
    """A run's settlements and standings, by dimension in the tournament's order."""

    tournament: Tournament
    publication: Publication
    judge: JudgeSettings
    settlements: Mapping[Dimension, tuple[Settlement, ...]]
    battles: Mapping[Dimension, Battles]  # ties as half
    boards: tuple[Leaderboard, ...]  # of these, by Bradley-Terry
    played: Mapping[Dimension, Played]  # by Elo

    @cached_property
    def standings(self) -> Mapping[Dimension, Standings]:
        """The standings by Elo, which take longest to compute."""
        terms = self.publication.terms
        return {
            dimension: standings(
                dimension, group, terms.entrants, terms.elo, self.played[dimension]
            )
            for dimension, group in self.settlements.items()
        }


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
    start: Starter = partial,
) -> Results:
    """Compute the ratings of settlements, by the terms of a publication.

    Those by Elo are started, and waited for when somebody looks at the standings.
    """
    terms = publication.terms
    played = {
        dimension: start(rate, *elo_task(group, terms.elo)) for dimension, group in groups.items()
    }
    battles = {name: settled_battles(group, ties="half") for name, group in groups.items()}
    return Results(
        tournament=tournament,
        publication=publication,
        judge=judge,
        settlements=groups,
        battles=battles,
        boards=tuple(
            leaderboard(dimension, each, terms.bradley_terry, terms.entrants)
            for dimension, each in battles.items()
        ),
        played=played,
    )
