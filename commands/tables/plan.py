"""What is owed, as tables."""

from collections.abc import Iterable
from typing import Final

from commands.plan import OwedResponses, OwedVerdicts
from commands.plan_cost import NO_TOKENS, PlannedCost
from commands.tables.cost import cost_fields, cost_notes
from commands.tables.table import Column, Table
from ledger.identity import Json

TOKENS: Final = (Column("n_input", "Tokens in"), Column("n_output", "Tokens out"))


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


def owed_verdicts_table(rows: Iterable[OwedVerdicts], cost: PlannedCost | None = None) -> Table:
    """Show what judging would do, and what it would cost; without a cost it is free."""
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
            *(TOKENS if cost else ()),
        ),
        rows=tuple({**row._asdict(), **_tokens(row, cost)} for row in rows),
        notes=(
            f"{total} queries are owed" if total else "no query is owed",
            *((f"{waiting} pairs wait for responses",) if waiting else ()),
            *(cost_notes(cost) if cost else ()),
        ),
        facts={
            "n_owed": total,
            "n_waiting": waiting,
            "cost": None if cost is None else cost_fields(cost),
        },
    )


def _tokens(row: OwedVerdicts, cost: PlannedCost | None) -> dict[str, Json]:
    """Return the tokens that a dimension's queries are likely to take; null where it is free."""
    if cost is None:
        return {"n_input": None, "n_output": None}
    return dict(cost.tokens.get(row.dimension, NO_TOKENS)._asdict())
