"""Events, audits, replays and merges as tables."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

from commands.auditing.replay import Replayed
from commands.auditing.verify import Verification
from commands.cli.tables.table import Table, table_of
from commands.errors import counted, first_lines
from commands.importing.merge import MergeCounts
from ledger.auditing.audit import Redaction
from ledger.identity import Json
from ledger.recorded import StoredEvent
from projections.results.columns import KEPT, Column, Kept, Shown


class LogRow(NamedTuple):
    """An event of the ledger."""

    position: Kept[int]
    recorded_at: Annotated[str, Column("Recorded", importance=1)]
    stream: Annotated[str, Column("Tournament")]
    type: Annotated[str, Column("Event", importance=KEPT)]
    key: Annotated[str, Column("Of", importance=KEPT)]
    event_id: str


def log_table(rows: Iterable[StoredEvent]) -> Table:
    """Return a row for each event; a note says that there is none."""
    rows = tuple(rows)
    return table_of(
        LogRow,
        (
            LogRow(
                position=row.position,
                recorded_at=row.decode().recorded_at.isoformat(),
                stream=row.stream,
                type=row.type,
                key=_key(row),
                event_id=row.event_id.hex(),
            )
            for row in rows
        ),
        "tourney/log@1",
        "Events",
        notes=() if rows else ("no events",),
    )


def _key(row: StoredEvent) -> str:
    return " ".join(row.decode().event.natural_key)


def event_fields(row: StoredEvent) -> dict[str, Json]:
    """Return all fields of an event and its envelope."""
    recorded = row.decode()
    return {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "event_id": row.event_id.hex(),
        "recorded_at": recorded.recorded_at.isoformat(),
        "redacted": recorded.redacted,
        "chain": recorded.chain,
        "event": {"type": row.type, **recorded.event.fields},
    }


class FaultRow(NamedTuple):
    """Something wrong at a position of the ledger."""

    position: Shown[int]
    why: Annotated[str, Column("What is wrong")]


def faults_table(verified: Verification) -> Table:
    """Return a row for each fault that a check of the ledger found."""
    head, n_claims, n_foreign, faults, redactions, unmade = verified
    checked = f"{counted(head.position, 'event')}, {counted(n_claims, 'published run')}"
    foreign = f" ({n_foreign} from merged ledgers were not)" if n_foreign else ""
    return table_of(
        FaultRow,
        (FaultRow(position=fault.position, why=fault.why) for fault in faults),
        "tourney/verify@1",
        "Faults",
        notes=(
            f"{checked} checked{foreign}: {counted(len(faults), 'fault')}, checkpoint {head}",
            *first_lines([*map(_redaction_line, redactions)], len(redactions), "redaction"),
            *(f"{file.run}/{file.path} {file.why}" for file in unmade),
        ),
        facts={
            "n_events": head.position,
            "n_redacted": len(redactions),
            "redacted": [file._asdict() for file in redactions],
            "n_runs": n_claims,
            "n_foreign_runs": n_foreign,
            "checkpoint": str(head),
        },
    )


def _redaction_line(redaction: Redaction) -> str:
    position, type_, told_at, why = redaction
    return f"position {position} ({type_}) was redacted; reason (position {told_at}): {why}"


class DifferenceRow(NamedTuple):
    """A file of a run that differs from the ledger."""

    run: Shown[str]
    path: Annotated[str, Column("File")]
    why: Annotated[str, Column("What is wrong")]


def differences_table(replayed: Replayed) -> Table:
    """Return a row for each file that differs from the ledger."""
    n_runs = counted(len(replayed.runs), "run")
    return table_of(
        DifferenceRow,
        (
            DifferenceRow(run=file.run, path=file.path, why=file.why)
            for file in replayed.differences
        ),
        "tourney/replay@1",
        "Differences",
        notes=(f"{n_runs} rebuilt, {counted(len(replayed.differences), 'difference')}",),
        facts={"runs": list(replayed.runs)},
    )


class ConflictRow(NamedTuple):
    """An event of another ledger that contradicts one of this."""

    position: Annotated[int, Column("Position here")]
    their_position: Annotated[int, Column("Position there")]
    stream: Annotated[str, Column("Tournament")]
    type: Annotated[str, Column("Event", importance=KEPT)]
    key: Annotated[str, Column("Of", importance=KEPT)]


def conflicts_table(taken: MergeCounts) -> Table:
    """Return a row for each event of another ledger that contradicts this one."""
    note = (
        f"{counted(taken.n_new, 'event')} imported, {taken.n_known} already here,"
        f" {counted(len(taken.conflicts), 'conflict')},"
        f" {counted(taken.n_left, 'outcome')} left out, to be reconciled again"
    )
    if taken.n_unfounded:
        left = counted(taken.n_unfounded, "sample or completion", "samples and completions")
        note += f", {left} left out that do not match the plans here"
    return table_of(
        ConflictRow,
        (
            ConflictRow(
                position=conflict.position,
                their_position=conflict.row.position,
                stream=conflict.row.stream,
                type=conflict.row.type,
                key=_key(conflict.row),
            )
            for conflict in taken.conflicts
        ),
        "tourney/merge@1",
        "Conflicts: this ledger's events were kept",
        notes=(note,),
        facts={
            "n_new": taken.n_new,
            "n_known": taken.n_known,
            "n_left": taken.n_left,
            "n_unfounded": taken.n_unfounded,
        },
    )
