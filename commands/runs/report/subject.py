"""What a report is about: the results of a tournament, and what the ledger holds beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ledger.chain import Head
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.artifacts.results import Results
from projections.evaluations.metrics import RunMetrics, metrics_of
from projections.evaluations.samples import ASKED_EVENTS, Items, asked_evaluations_of
from projections.fold import fold
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.standings import Standings
from projections.tournament.settlement import Settlement
from projections.tournament.spend import Spend, spend_of


class RatedDimension(NamedTuple):
    """One dimension: its settlements, and its ratings by both engines."""

    name: Dimension
    settlements: Sequence[Settlement]
    standings: Standings
    board: Leaderboard


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
            RatedDimension(name, group, results.standings[name], boards[name])
            for name, group in results.settlements.items()
        )


def subject_of(
    ledger: Ledger, results: Results, *, is_run: bool, spend: Spend | None = None
) -> Subject:
    """Read from a ledger what a report shows beside the results, up to the same position.

    What was spent may be known already.
    """
    stream, until = results.tournament.stream, results.publication.as_of
    spend = spend or fold(spend_of(stream), ledger.read(until=until))
    events = ledger.read(until=until, types=ASKED_EVENTS)
    known, items = fold(asked_evaluations_of(stream), events)
    return Subject(results, spend, tuple(map(metrics_of, known.runs)), items, is_run)
