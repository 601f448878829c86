"""Batches as a table: where each is, what it asks, and until when its results can be read."""

from datetime import datetime

from commands.tables.table import Column, Table
from ledger.identity import Json
from projections.tournament.batches import Batch
from projections.tournament.state import Tournament


def batches_table(state: Tournament, judge: str | None) -> Table:
    """Show a tournament's batches, or those of one judge, the oldest first."""
    rows = [each for each in state.own_batches if judge in {None, each.planned.judge.label}]
    n_open = sum(batch.is_open for batch in rows)
    return Table(
        schema="tourney/batches@1",
        title="Batches",
        columns=(
            Column("number", "No."),
            Column("batch", "Batch"),
            Column("status", "Status"),
            Column("judge", "Judge"),
            Column("n_queries", "Queries"),
            Column("n_verdicts", "With verdict"),
            Column("expected_usd", "Expected $", 4),
            Column("results_kept_until", "Kept until"),
        ),
        rows=tuple(_row(state, batch) for batch in rows),
        notes=(f"{n_open} of {len(rows)} are open; `tourney batch wait` receives them",)
        if n_open
        else ("nothing is in flight",),
    )


def _row(state: Tournament, batch: Batch) -> dict[str, Json]:
    planned, submitted = batch.planned, batch.submitted
    return {
        "number": planned.number,
        "batch": submitted.provider_batch_id if submitted else None,
        "status": batch.status,
        "judge": planned.judge.label,
        "n_queries": len(planned.queries),
        "n_verdicts": sum(key in state.verdicts for key in planned.queries),
        "expected_usd": planned.expected_usd,
        "worst_usd": planned.worst_usd,
        "planned_at": _minute(batch.recorded.recorded_at),
        "expires_at": _minute(submitted.expires_at) if submitted else None,
        "results_kept_until": _minute(batch.results_kept_until),
    }


def _minute(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="minutes")
