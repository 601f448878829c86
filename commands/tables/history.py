"""What happened, and what an audit found, as tables."""

from collections.abc import Iterable

from commands.counted import counted
from commands.replay import Replayed
from commands.tables.table import Column, Table
from commands.verify import Verified
from ledger.identity import Json
from ledger.recorded import Row


def log_table(rows: Iterable[Row]) -> Table:
    """Show events, one a line."""
    return Table(
        schema="tourney/log@1",
        title="Events",
        columns=(
            Column("position", "Position"),
            Column("recorded_at", "Recorded"),
            Column("stream", "Tournament"),
            Column("type", "Event"),
            Column("key", "Of"),
        ),
        rows=tuple(
            {
                "position": row.position,
                "recorded_at": row.recorded().recorded_at.isoformat(),
                "stream": row.stream,
                "type": row.type,
                "key": " ".join(row.recorded().event.natural_key),
                "event_id": row.event_id.hex(),
            }
            for row in rows
        ),
    )


def event_fields(row: Row) -> dict[str, Json]:
    """Return an event with its envelope, whole."""
    recorded = row.recorded()
    return {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "event_id": row.event_id.hex(),
        "recorded_at": recorded.recorded_at.isoformat(),
        "chain": recorded.chain,
        "event": {"type": row.type, **recorded.event.fields},
    }


def faults_table(verified: Verified) -> Table:
    """Show what a check of the whole ledger found."""
    head, n_claims, n_foreign, faults = verified
    checked = f"{counted(head.position, 'event')}, {counted(n_claims, 'published run')}"
    foreign = f" ({n_foreign} of merged ledgers were not)" if n_foreign else ""
    return Table(
        schema="tourney/verify@1",
        title="Faults",
        columns=(Column("position", "Position"), Column("why", "What is wrong")),
        rows=tuple({"position": fault.position, "why": fault.why} for fault in faults),
        notes=(f"{checked} checked{foreign}: {counted(len(faults), 'fault')}, checkpoint {head}",),
        facts={
            "n_events": head.position,
            "n_runs": n_claims,
            "n_foreign_runs": n_foreign,
            "checkpoint": str(head),
        },
    )


def differences_table(replayed: Replayed) -> Table:
    """Show what a replay found."""
    n_runs = counted(len(replayed.runs), "run")
    return Table(
        schema="tourney/replay@1",
        title="Differences",
        columns=(Column("run", "Run"), Column("path", "File"), Column("why", "What is wrong")),
        rows=tuple(each._asdict() for each in replayed.differences),
        notes=(f"{n_runs} rebuilt, {counted(len(replayed.differences), 'difference')}",),
        facts={"runs": list(replayed.runs)},
    )
