"""Everything that a report shows, and how it is read from a ledger."""

from dataclasses import dataclass
from typing import NamedTuple

from ledger.chain import Head
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.artifacts.results import Results
from projections.battles.columns import Battles
from projections.evaluations.metrics import RunMetrics, metrics_of
from projections.evaluations.samples import ASKED_EVENTS, Items, asked_evaluations_of
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings
from projections.tournament.spend import Spend, spend_of


class RatedDimension(NamedTuple):
    """One dimension: its pairs, and its ratings by both engines."""

    name: Dimension
    comparisons: Battles
    board: Leaderboard
    standings: Standings  # by Elo


@dataclass(frozen=True)
class Subject:
    """Everything that a report shows."""

    results: Results
    spend: Spend
    evaluations: tuple[RunMetrics, ...]
    items: Items  # of the evaluations
    is_run: bool  # of a published run; else of the tournament as it stands

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
            RatedDimension(name, results.comparisons[name], boards[name], results.standings[name])
            for name in results.settlements
        )


def subject_of(ledger: Ledger, results: Results, *, is_run: bool) -> Subject:
    """Read from a ledger what a report shows beside the results, up to the same position."""
    stream, until = results.tournament.stream, results.publication.as_of
    spend = fold(spend_of(stream), ledger.read(stream=stream, until=until))
    evaluations, items = fold(
        asked_evaluations_of(stream), ledger.read(until=until, types=ASKED_EVENTS)
    )
    return Subject(results, spend, tuple(map(metrics_of, evaluations.runs)), items, is_run)
