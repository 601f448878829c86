"""What every artifact of a run is written from: the publication, settled and rated."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from ledger.events.ratings import Edition, Publication, Terms
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, Json
from projections.artifacts import first_edition
from projections.elo import rate
from projections.leaderboard import Leaderboard
from projections.rule import Rule
from projections.settlement import Settlement, by_dimension, settle
from projections.standings import Engine, Standings, standings
from projections.tournament import Tournament
from projections.tournament_ratings import Groups
from projections.tournament_ratings import by_dimension as rated_by_dimension

Fields: TypeAlias = dict[str, Json]
"""One JSON object of an artifact."""

EDITION: Final[Edition] = 4
"""The one that runs are published in now."""

_ENGINES: Final[Mapping[Edition, Engine]] = MappingProxyType(
    {1: first_edition.rate, 2: rate, 3: rate, 4: rate}
)


@dataclass(frozen=True)
class Results:
    """A run's settlements and standings, by dimension in the tournament's order."""

    tournament: Tournament
    publication: Publication
    judge: JudgeSettings
    settlements: Mapping[Dimension, tuple[Settlement, ...]]
    standings: Mapping[Dimension, Standings]
    boards: tuple[Leaderboard, ...]  # by Bradley-Terry; none in the first edition


def results_of(tournament: Tournament, publication: Publication) -> Results:
    """Settle and rate what a publication claims."""
    terms = publication.terms
    judge = tournament.judge(terms.judge)
    settled = settle(tournament, frozenset(terms.prompts), judge, Rule(policy=terms.policy))
    groups = by_dimension(tournament, settled)
    return Results(
        tournament=tournament,
        publication=publication,
        judge=judge,
        settlements=groups,
        standings={
            dimension: standings(
                dimension, group, terms.entrants, terms.elo, _ENGINES[terms.edition]
            )
            for dimension, group in groups.items()
        },
        boards=_boards(groups, terms),
    )


def _boards(groups: Groups, terms: Terms) -> tuple[Leaderboard, ...]:
    if terms.bradley_terry is None:
        return ()
    return rated_by_dimension(groups, terms.bradley_terry, terms.entrants)
