"""Bradley-Terry leaderboards with their notes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from commands.cli.project.bt_options import PairOptions
from commands.cli.tables.ratings.bradley_terry.pairs import pairs_table
from commands.cli.tables.ratings.bradley_terry.ratings import bt_table
from commands.cli.tables.table import Table
from commands.runs.judged_tournament import JudgedTournament
from ledger.events.ratings import BradleyTerryParameters, TieModel
from ledger.identity import Dimension, Json
from projections.battles.columns import Battles, battles_of
from projections.battles.settled import scored_orders
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.bradley_terry.rate import Zero
from projections.tournament.compared import account_of


class RatedBoards(NamedTuple):
    """Leaderboards with their notes."""

    boards: Sequence[Leaderboard]
    parameters: BradleyTerryParameters
    notes: Sequence[str]
    facts: Mapping[str, Json]
    sources: Mapping[str, str] | None = None  # who judged each entrant's battles
    zeros: Sequence[Sequence[Zero]] | None = None  # the reference of each rating

    def table(self, pairwise: PairOptions) -> Table:
        """Return the table of pairs, or that of ratings."""
        if pairwise.adjustment is None:
            return bt_table(
                self.boards,
                self.parameters,
                notes=self.notes,
                facts=self.facts,
                sources=self.sources,
                zeros=self.zeros,
            )
        return pairs_table(
            self.boards,
            self.parameters,
            pairwise.adjustment,
            notes=self.notes,
            facts=self.facts,
        )


def battles_by_dimension(
    source: JudgedTournament, ties: TieModel, temperature: float | None
) -> Mapping[Dimension, Battles]:
    """Return a tournament's battles by dimension: verdicts, or soft scores at a temperature."""
    return {
        dimension: battles_of(group).by_verdicts(ties)
        if temperature is None
        else scored_orders(source.state, group).soft(temperature).grouped(source.state.same_texts)
        for dimension, group in source.settlements.items()
    }


def facts_of(source: JudgedTournament) -> dict[str, Json]:
    """Return the judge, and how many pairs have which outcome, for JSON."""
    accounts: dict[str, Json] = {
        name: account_of(group).fields() for name, group in source.settlements.items()
    }
    return {"judge": source.judge_id, "accounts": accounts}
