"""What is owed, as tables."""

from collections.abc import Iterable

from commands.plan import OwedResponses, OwedVerdicts
from commands.tables.table import Column, Table


def owed_responses_table(rows: Iterable[OwedResponses]) -> Table:
    """Show what generating would do."""
    rows = tuple(rows)
    total = sum(row.n_responses for row in rows)
    return Table(
        schema="tourney/plan-generate@1",
        title="Responses owed",
        columns=(
            Column("entrant", "Entrant"),
            Column("n_responses", "Responses"),
            Column("n_tokens_at_most", "Tokens at most"),
        ),
        rows=tuple(
            {
                "entrant": row.entrant_id,
                "n_responses": row.n_responses,
                "n_tokens_at_most": row.n_tokens_at_most,
            }
            for row in rows
        ),
        notes=(f"{total} responses are owed" if total else "nothing is owed",),
        facts={"n_owed": total},
    )


def owed_verdicts_table(rows: Iterable[OwedVerdicts]) -> Table:
    """Show what judging would do."""
    rows = tuple(rows)
    total = sum(row.n_queries for row in rows)
    waiting = sum(row.n_waiting for row in rows)
    return Table(
        schema="tourney/plan-judge@1",
        title="Judge queries owed",
        columns=(
            Column("dimension", "Dimension"),
            Column("n_pairs", "Pairs"),
            Column("n_queries", "Queries"),
            Column("n_waiting", "Waiting pairs"),
        ),
        rows=tuple(row._asdict() for row in rows),
        notes=(
            f"{total} queries are owed" if total else "no query is owed",
            *((f"{waiting} pairs wait for responses",) if waiting else ()),
        ),
        facts={"n_owed": total, "n_waiting": waiting},
    )
