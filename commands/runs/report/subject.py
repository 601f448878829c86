"""Everything that a report shows: a tournament's results, and further facts from the ledger."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from immutables import Map

from ledger.chain import Head
from ledger.identity import Digest, Dimension
from ledger.store import Ledger
from projections.artifacts.results import Results
from projections.battles.columns import Battles
from projections.evaluations.metrics import RunMetrics, metrics_of
from projections.evaluations.samples import ASKED_EVENTS, Items, asked_evaluations_of
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings
from projections.tournament.settlement import Settlement
from projections.tournament.spend import Spend, spend_of
from projections.tournament.state import Tournament
from projections.verdicts.queries import RecordedVerdict, Said

Replies: TypeAlias = Callable[[Collection[Digest]], Map[Digest, RecordedVerdict]]
"""Returns what was replied to some queries."""


class RatedDimension(NamedTuple):
    """One dimension: its settlements, and its ratings by both engines."""

    name: Dimension
    settlements: Sequence[Settlement]
    results: Results
    board: Leaderboard

    @property
    def comparisons(self) -> Battles:
        """Its settlements in columns."""
        return self.results.comparisons[self.name]

    @property
    def standings(self) -> Standings:
        """Its standings by Elo."""
        return self.results.standings[self.name]


@dataclass(frozen=True)
class Subject:
    """Everything that a report shows."""

    results: Results
    spend: Spend
    evaluations: tuple[RunMetrics, ...]
    items: Items  # of the evaluations
    is_run: bool  # of a published run; else of the tournament as it stands
    said: Said | None = None  # verdicts, if the tournament was read without; None: it has them
    replies: Replies | None = None  # likewise, those with the judge's words

    @property
    def head(self) -> Head:
        """The head of the ledger up to which it was read."""
        return Head(self.results.publication.as_of, self.results.publication.head)

    @property
    def dimensions(self) -> tuple[RatedDimension, ...]:
        """The dimensions in the tournament's order."""
        results = self.results
        boards = {board.name: board for board in results.boards}
        return tuple(
            RatedDimension(name, group, results, boards[name])
            for name, group in results.settlements.items()
        )

    def with_replies(self, battles: Sequence[Settlement]) -> Tournament:
        """Return the tournament with what judges replied about some battles."""
        state = self.results.tournament
        if self.replies is None:
            return state
        queries = [key for each in battles if each.match for _, key in each.match.keys]
        return replace(state, verdicts=self.replies(queries))


def subject_of(
    ledger: Ledger, results: Results, *, is_run: bool, spend: Spend | None = None
) -> Subject:
    """Read from a ledger what a report shows beside the results, up to the same position.

    What was spent may be known already.
    """
    stream, until = results.tournament.stream, results.publication.as_of
    spend = spend or fold(spend_of(stream), ledger.read(until=until))
    known, items = fold(asked_evaluations_of(stream), ledger.read(until=until, types=ASKED_EVENTS))
    return Subject(results, spend, tuple(map(metrics_of, known.runs)), items, is_run)
