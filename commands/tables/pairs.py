"""Pairs of entrants as tables: win rates and the match list."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from commands.tables.table import Column, Table
from ledger.identity import Json
from projections.ratings.standings import WinRate
from projections.tournament.settlement import Settlement

_TITLES: Final = {
    "pairs": "Wins by pair, each pairing counted once",
    "orders": "Wins by pair, each pairing counted twice, once in each order",
}
_NOTES: Final = {
    "pairs": "A's share counts a tie as half; its interval is Wilson's.",
    "orders": (
        "A's share counts a tie as half; its interval is Wilson's of half as many trials, as a"
        " pairing's two orders are not independent."
    ),
}


def winrates_table(
    rows: Iterable[WinRate],
    *,
    counted: Literal["pairs", "orders"] = "pairs",
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Show each pair of entrants; a comes before b in the alphabet.

    Args:
        rows: What was counted.
        counted: Whether each order of a pairing counts for itself.
        notes: What else must be said.
        facts: What else JSON has beside the rows.
    """
    return Table(
        schema="tourney/winrates@1",
        title=_TITLES[counted],
        columns=(
            Column("dimension", "Dimension"),
            Column("entrant_a", "A"),
            Column("entrant_b", "B"),
            Column("a_wins", "A wins"),
            Column("b_wins", "B wins"),
            Column("ties", "Ties"),
            Column("inconsistent", "Inconsistent"),
            Column("missing", "Missing"),
            Column("win_rate", "A's share", 3),
            Column("ci95_low", "95 % low", 3),
            Column("ci95_high", "95 % high", 3),
        ),
        rows=tuple(_win_rate_row(row, counted) for row in rows),
        notes=(*notes, _NOTES[counted]),
        facts={**(facts or {})},
        named_by=("dimension", "entrant_a", "entrant_b"),
        compared=("win_rate",),
    )


def _win_rate_row(row: WinRate, counted: Literal["pairs", "orders"]) -> Mapping[str, Json]:
    lower, upper = row.interval(counted) or (None, None)
    return {
        **row._asdict(),
        "win_rate": row.win_rate,
        "ci95_low": lower,
        "ci95_high": upper,
    }


def matches_table(
    settlements: Iterable[Settlement],
    *,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Json] | None = None,
) -> Table:
    """Show every pairing and what became of it, or of each of its orders.

    Args:
        settlements: Of the pairings.
        notes: What else must be said.
        facts: What else JSON has beside the rows.
    """
    settlements = tuple(settlements)
    by_order = any(each.order for each in settlements)
    return Table(
        schema="tourney/matches@1",
        title="Matches",
        columns=(
            Column("dimension", "Dimension"),
            Column("prompt", "Prompt"),
            Column("entrant_a", "A"),
            Column("entrant_b", "B"),
            *([Column("order", "Order")] if by_order else ()),
            Column("status", "Status"),
            Column("winner", "Winner"),
        ),
        rows=tuple(
            {
                "dimension": pairing.rubric.dimension,
                "prompt": pairing.prompt.prompt_id,
                "entrant_a": pairing.a.entrant.entrant_id,
                "entrant_b": pairing.b.entrant.entrant_id,
                **({"order": settlement.order} if by_order else {}),
                "status": settlement.status,
                "winner": settlement.winner,
            }
            for settlement in settlements
            for pairing in (settlement.pairing,)
        ),
        notes=notes,
        facts={**(facts or {})},
    )
