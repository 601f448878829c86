"""`tourney log`, `verify`, `replay`, `backup` and `redact`: audit a ledger."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from commands.auditing.events import find_events, redact_with_consent
from commands.auditing.events import follow as follow_rows
from commands.auditing.replay import Difference, Replayed
from commands.auditing.replay import replay as replay_runs
from commands.auditing.soundness import require_sound
from commands.auditing.verify import Verification, noted_heads
from commands.auditing.verify import verify as verify_ledger
from commands.cli.shared import completion, options
from commands.cli.shared.output import say, write_json, write_table
from commands.cli.shared.selection import OF_LEDGER, OF_TOURNAMENT, WRITTEN, Selected, selecting
from commands.cli.shared.terminal import console, progress_on_stderr
from commands.cli.shared.workspace import ledger_to_change
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table, table_of
from commands.errors import AuditDisagrees, ConfigurationError, counted, first_lines
from ledger.events.registry import EVENTS
from ledger.exchange import back_up, unfinished_backups
from ledger.identity import Json
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from projections.results.columns import KEPT, Column, Kept, Shown

_LOOKS_EVERY_S: Final = 0.5


@selecting(*OF_LEDGER, "as_of", *WRITTEN)
def log(
    ctx: Selected,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=lambda: [*EVENTS.types],
            help="An event type: list those events. A position, a label, or the start of a key:"
            " print its events whole, as JSON.",
        ),
    ] = None,
    limit: options.Limit = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep printing new events until Ctrl-C.")
    ] = False,
) -> None:
    """List events, the newest last, or print those of an id whole.

    Example: tourney log VerdictReceived --limit 20
    """
    selection = ctx.selection
    is_listed = name is None or name in EVENTS.types
    if follow and not is_listed:
        raise ConfigurationError(["--follow lists what is new: leave out the id"])
    with Ledger.read_only(selection.path) as opened:
        chosen = selection.position_in(opened)
        until = opened.head.position if chosen is None else chosen
        if name is None or is_listed:
            rows = opened.newest_rows(until=until, event_type=name, limit=limit)
        else:
            meant = tuple(row for row in find_events(opened, name) if row.position <= until)
            rows = meant if limit is None else meant[-limit:]
    chosen_format = selection.chosen_format
    if follow and chosen_format is Format.JSON:  # a document has no end that could be followed
        chosen_format = Format.JSONL
    if is_listed:
        write_table(log_table(rows), chosen_format)
    else:
        for row in rows:
            write_json(event_fields(row))
    if follow:
        for row in follow_rows(selection.path, until, wait=lambda: time.sleep(_LOOKS_EVERY_S)):
            if name in {None, row.type}:
                write_table(log_table([row]), Format.JSONL)


@selecting(*OF_LEDGER, *WRITTEN)
def verify(
    ctx: Selected,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|DIGEST@POSITION",
            help="A checkpoint that was printed earlier, or a file that holds some.",
        ),
    ] = None,
) -> None:
    """Check the ledger: hashes, events and published runs.

    Prints a checkpoint, the hash of all events until now. Keep it elsewhere: a later check that is
    given it detects that events were removed or rewritten.

    Example: tourney verify --checkpoint note.txt
    """
    noted = [head for name in checkpoint or () for head in noted_heads(name)]
    with Ledger.read_only(ctx.selection.path) as opened, progress_on_stderr() as on_progress:
        verified = verify_ledger(opened, noted, on_progress)
    ctx.selection.write(faults_table(verified))
    if verified.faults:
        raise AuditDisagrees(f"{counted(len(verified.faults), 'fault')} in {ctx.selection.path}")


@selecting(*OF_TOURNAMENT, *WRITTEN)
def replay(
    ctx: Selected,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the rebuilt runs into this folder.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            autocompletion=completion.runs, help="Compare this run's folder byte for byte."
        ),
    ] = None,
) -> None:
    """Rebuild all runs from the events and compare them.

    Example: tourney replay
    """
    selection = ctx.selection
    with Ledger.read_only(selection.path) as opened:
        replayed = replay_runs(
            opened,
            selection.stream_in(opened),
            until=selection.position_in(opened),
            against=against,
            out=output,
        )
    selection.write(differences_table(replayed))
    if faults := [file for file in replayed.differences if file.is_fault]:
        files = ", ".join(f"{file.run}/{file.path}" for file in faults)
        raise AuditDisagrees(f"files differ from the ledger: {files}")
    if not replayed.runs:
        say("no run was published yet; `tourney run` publishes one")


@selecting(*OF_LEDGER)
def backup(
    ctx: Selected,
    to: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
) -> None:
    """Copy the ledger, even while a run is writing to it.

    Checks the copy as `tourney verify` does, except for the meaning of its events.

    Example: tourney backup safe/tournament.db
    """
    with Ledger.read_only(ctx.selection.path) as opened:
        back_up(opened, to)
    with Ledger.read_only(to) as copy:
        require_sound(copy)
        say(f"{counted(copy.head.position, 'event')} in {to}, checkpoint {copy.head}")
    for file in unfinished_backups(to):
        say(f"{file} was left by an unfinished backup; remove it if no backup is running")


@selecting(*OF_LEDGER)
def redact(
    ctx: Selected,
    position: Annotated[
        int, typer.Argument(min=1, help="The event's position, as `tourney log` shows it.")
    ],
    why: Annotated[
        str,
        typer.Option(metavar="TEXT", help="The reason; it is recorded. Do not repeat the secret."),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove the texts of an event from the ledger for good.

    Use it if a secret was recorded. The event stays with its ids, numbers and verdict, and every
    hash stays valid; `tourney verify` reports the redaction. Copies elsewhere are not changed.

    Example: tourney redact 7 --why "an API key in the reply"
    """
    with ledger_to_change(ctx.selection.path) as opened, console() as talk:
        redact_with_consent(opened, position, why, agreed=yes, console=talk)


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
                key=" ".join(row.decode().event.natural_key),
                event_id=row.event_id.hex(),
            )
            for row in rows
        ),
        "tourney/log@1",
        "Events",
        notes=() if rows else ("no events",),
    )


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
    redacted = [
        f"position {at} ({type_}) was redacted; reason (position {told_at}): {why}"
        for at, type_, told_at, why in redactions
    ]
    return table_of(
        FaultRow,
        (FaultRow(*fault) for fault in faults),
        "tourney/verify@1",
        "Faults",
        notes=(
            f"{checked} checked{foreign}: {counted(len(faults), 'fault')}, checkpoint {head}",
            *first_lines(redacted, len(redactions), "redaction"),
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


def differences_table(replayed: Replayed) -> Table:
    """Return a row for each file that differs from the ledger."""
    n_runs = counted(len(replayed.runs), "run")
    return table_of(
        Difference,
        replayed.differences,
        "tourney/replay@1",
        "Differences",
        without={"is_fault"},
        notes=(f"{n_runs} rebuilt, {counted(len(replayed.differences), 'difference')}",),
        facts={"runs": list(replayed.runs)},
    )
