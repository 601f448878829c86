"""`tourney project matches` and `winrates`: what pairings came to."""

from commands.cli.asked import Reading
from commands.cli.reading import reading_ratings, reading_verdicts
from commands.tables.pairs import matches_table, winrates_table
from commands.tables.table import Table
from ledger.identity import Json
from projections.ratings.standings import win_rates
from projections.tournament.settlement import account_of


@reading_verdicts
def matches(source: Reading) -> Table:
    """List every pairing and what became of it. Example: tourney project matches --json."""
    settlements = (each for group in source.settlements.values() for each in group)
    return matches_table(settlements, notes=source.notes, facts=_facts(source))


@reading_ratings
def winrates(source: Reading) -> Table:
    """Count wins, losses, ties and gaps by pair. Example: tourney project winrates --format csv."""
    settlements = [each for group in source.settlements.values() for each in group]
    counted = account_of(settlements).counted
    return winrates_table(
        win_rates(settlements), counted=counted, notes=source.notes, facts=_facts(source)
    )


def _facts(source: Reading) -> dict[str, Json]:
    return {"judge": source.judge_id}
