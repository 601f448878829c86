"""What happened, and what an audit found, as tables."""

from collections.abc import Iterable, Sequence

from commands.counted import counted
from commands.replay import Replayed
from commands.tables.table import Column, Table
from ledger.audit import Fault
from ledger.events.fact import type_name
from ledger.identity import Json
from ledger.recorded import Recorded
from ledger.store import Head


def log_table(events: Iterable[Recorded]) -> Table:
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
                "position": recorded.position,
                "recorded_at": recorded.recorded_at.isoformat(),
                "stream": recorded.stream,
                "type": type_name(recorded.event),
                "key": " ".join(recorded.event.natural_key),
                "event_id": recorded.event_id,
            }
            for recorded in events
        ),
    )


def event_fields(recorded: Recorded) -> dict[str, Json]:
    """Return an event with its envelope, whole."""
    return {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "event_id": recorded.event_id,
        "recorded_at": recorded.recorded_at.isoformat(),
        "chain": recorded.chain,
        "event": recorded.event.model_dump(mode="json"),
    }


def faults_table(faults: Sequence[Fault], head: Head) -> Table:
    """Show what an audit of the bytes found."""
    n_events = counted(head.position, "event")
    return Table(
        schema="tourney/verify@1",
        title="Faults",
        columns=(Column("position", "Position"), Column("why", "What is wrong")),
        rows=tuple({"position": fault.position, "why": fault.why} for fault in faults),
        notes=(f"{n_events}, {counted(len(faults), 'fault')}, head {head.chain}",),
        facts={"n_events": head.position, "head": head.chain},
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
