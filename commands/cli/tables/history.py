"""Events, audits, replays, checkpoints and merges as tables."""

from collections.abc import Iterable
from typing import Final

from commands.cli.tables.table import KEPT, Table, columns
from commands.errors import counted, first_lines
from commands.importing.merge import MergeCounts
from commands.runs.auditing.replay import Replayed
from commands.runs.auditing.verify import Verification
from ledger.auditing.audit import Redaction
from ledger.chain import Head
from ledger.identity import Json
from ledger.recorded import StoredEvent

_OF_EVENTS: Final = (
    *columns(stream="Tournament"),
    *columns(importance=KEPT, type="Event", key="Of"),
)


def log_table(rows: Iterable[StoredEvent]) -> Table:
    """Return a row for each event; a note says that there is none."""
    rows = tuple(rows)
    return Table(
        schema="tourney/log@1",
        title="Events",
        columns=(
            *columns("position", importance=KEPT),
            *columns(importance=1, recorded_at="Recorded"),
            *_OF_EVENTS,
        ),
        rows=tuple(
            {
                "position": row.position,
                "recorded_at": row.decode().recorded_at.isoformat(),
                **_named(row),
                "event_id": row.event_id.hex(),
            }
            for row in rows
        ),
        notes=() if rows else ("no events",),
    )


def _named(row: StoredEvent) -> dict[str, Json]:
    return {
        "stream": row.stream,
        "type": row.type,
        "key": " ".join(row.decode().event.natural_key),
    }


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


def faults_table(verified: Verification) -> Table:
    """Return a row for each fault that a check of the ledger found."""
    head, n_claims, n_foreign, faults, redactions, unmade = verified
    checked = f"{counted(head.position, 'event')}, {counted(n_claims, 'published run')}"
    foreign = f" ({n_foreign} from merged ledgers were not)" if n_foreign else ""
    return Table(
        schema="tourney/verify@1",
        title="Faults",
        columns=columns("position", why="What is wrong"),
        rows=tuple(fault._asdict() for fault in faults),
        notes=(
            f"{checked} checked{foreign}: {counted(len(faults), 'fault')}, checkpoint {head}",
            *first_lines([*map(_redaction_line, redactions)], len(redactions), "redaction"),
            *(f"{each.run}/{each.path} {each.why}" for each in unmade),
        ),
        facts={
            "n_events": head.position,
            "n_redacted": len(redactions),
            "redacted": [each._asdict() for each in redactions],
            "n_runs": n_claims,
            "n_foreign_runs": n_foreign,
            "checkpoint": str(head),
        },
    )


def _redaction_line(redaction: Redaction) -> str:
    position, type_, told_at, why = redaction
    return f"position {position} ({type_}) was redacted; reason (position {told_at}): {why}"


def differences_table(replayed: Replayed) -> Table:
    """Return a row for each file that differs from the ledger."""
    n_runs = counted(len(replayed.runs), "run")
    return Table(
        schema="tourney/replay@1",
        title="Differences",
        columns=columns("run", path="File", why="What is wrong"),
        rows=tuple(
            {"run": each.run, "path": each.path, "why": each.why} for each in replayed.differences
        ),
        notes=(f"{n_runs} rebuilt, {counted(len(replayed.differences), 'difference')}",),
        facts={"runs": list(replayed.runs)},
    )


def checkpoint_table(head: Head) -> Table:
    """Return the head of a ledger; the note is the line to keep."""
    return Table(
        schema="tourney/checkpoint@1",
        title="Checkpoint",
        columns=columns("position", "chain"),
        rows=(),
        notes=(str(head),),
        facts={"position": head.position, "chain": head.chain, "checkpoint": str(head)},
    )


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
    return Table(
        schema="tourney/merge@1",
        title="Conflicts: this ledger's events were kept",
        columns=(
            *columns(position="Position here", their_position="Position there"),
            *_OF_EVENTS,
        ),
        rows=tuple(
            {
                "position": conflict.position,
                "their_position": conflict.row.position,
                **_named(conflict.row),
            }
            for conflict in taken.conflicts
        ),
        notes=(note,),
        facts={
            "n_new": taken.n_new,
            "n_known": taken.n_known,
            "n_left": taken.n_left,
            "n_unfounded": taken.n_unfounded,
        },
    )
