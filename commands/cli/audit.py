"""`tourney log`, `show`, `verify`, `replay`, `checkpoint`, `backup`, `redact`: audit a ledger."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from commands.cli.shared import completion, options
from commands.cli.shared.command import command
from commands.cli.shared.ledger import head_at, position_of, stream_of
from commands.cli.shared.output import Writer, say, write_json
from commands.cli.shared.terminal import console, progress_on_stderr
from commands.cli.shared.workspace import ledger_to_change
from commands.cli.tables import history
from commands.cli.tables.render import Format
from commands.errors import AuditDisagrees, ConfigurationError, counted
from commands.runs.auditing.events import find_events
from commands.runs.auditing.events import follow as follow_rows
from commands.runs.auditing.redact import redact_with_consent
from commands.runs.auditing.replay import replay as replay_runs
from commands.runs.auditing.soundness import require_sound
from commands.runs.auditing.verify import noted_heads
from commands.runs.auditing.verify import verify as verify_ledger
from ledger.events.registry import EVENTS
from ledger.exchange import back_up, unfinished_backups
from ledger.search import newest
from ledger.store import Ledger

_LOOKS_EVERY_S: Final = 0.5


@command
def log(
    paths: options.Paths,
    writer: Writer,
    as_of: options.AsOf = None,
    event_type: Annotated[
        str | None,
        typer.Option(
            "--type", autocompletion=lambda: [*EVENTS.types], help="Only events of this type."
        ),
    ] = None,
    limit: options.Limit = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep printing new events until Ctrl-C.")
    ] = False,
) -> None:
    """List events, the newest last.

    Example: tourney log --type VerdictReceived --limit 20
    """
    if event_type is not None and event_type not in EVENTS.types:
        raise ConfigurationError(
            [f"--type {event_type!r} is not an event type; known: {', '.join(EVENTS.types)}"]
        )
    path = paths.of_ledger
    with Ledger.read_only(path) as opened:
        head, chosen = opened.head.position, position_of(opened, as_of)
        until = head if chosen is None else chosen
        rows = newest(opened, until=until, event_type=event_type, limit=limit)
    if follow and writer.chosen is Format.JSON:
        writer = Writer(Format.JSONL)  # one document has no end
    writer.write(history.log_table(rows))
    if follow:
        for row in follow_rows(path, until, wait=lambda: time.sleep(_LOOKS_EVERY_S)):
            if event_type in {None, row.type}:
                Writer(Format.JSONL).write(history.log_table([row]))


@command
def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A position, a label, or the start of a key.")
    ],
    paths: options.Paths,
) -> None:
    """Print the events of an id as JSON.

    Example: tourney show recall_001
    """
    with Ledger.read_only(paths.of_ledger) as opened:
        found = find_events(opened, name)
    for each in found:
        write_json(history.event_fields(each))


@command
def verify(
    paths: options.Paths,
    writer: Writer,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|DIGEST@POSITION",
            help="A line that `tourney checkpoint` printed, or a file of them.",
        ),
    ] = None,
) -> None:
    """Check the ledger: hashes, events and published runs.

    Example: tourney verify --checkpoint note.txt
    """
    path = paths.of_ledger
    noted = [head for name in checkpoint or () for head in noted_heads(name)]
    with Ledger.read_only(path) as opened, progress_on_stderr() as on_progress:
        verified = verify_ledger(opened, noted, on_progress)
    writer.write(history.faults_table(verified))
    if verified.faults:
        raise AuditDisagrees(f"{counted(len(verified.faults), 'fault')} in {path}")


@command
def replay(
    paths: options.Paths,
    writer: Writer,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
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
    with Ledger.read_only(paths.of_ledger) as opened:
        replayed = replay_runs(
            opened,
            stream_of(opened, tournament, paths.config),
            until=position_of(opened, as_of),
            against=against,
            out=output,
        )
    writer.write(history.differences_table(replayed))
    if faults := [each for each in replayed.differences if each.is_fault]:
        files = ", ".join(f"{each.run}/{each.path}" for each in faults)
        raise AuditDisagrees(f"files differ from the ledger: {files}")
    if not replayed.runs:
        say("no run was published yet; `tourney run` publishes one")


@command
def checkpoint(paths: options.Paths, writer: Writer, as_of: options.AsOf = None) -> None:
    """Print the ledger's current hash. Keep it elsewhere to detect tampering.

    Example: tourney checkpoint > note.txt
    """
    with Ledger.read_only(paths.of_ledger) as opened:
        head = head_at(opened, as_of)
    writer.write(history.checkpoint_table(head))


@command
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    paths: options.Paths,
) -> None:
    """Copy the ledger, even while a run is writing to it.

    Checks the copy as `tourney verify` does, except for the meaning of its events.

    Example: tourney backup safe/tournament.db
    """
    with Ledger.read_only(paths.of_ledger) as opened:
        back_up(opened, to)
    with Ledger.read_only(to) as copy:
        require_sound(copy)
        say(f"{counted(copy.head.position, 'event')} in {to}, checkpoint {copy.head}")
    for each in unfinished_backups(to):
        say(f"{each} was left by an unfinished backup; remove it if no backup is running")


@command
def redact(
    position: Annotated[
        int, typer.Argument(min=1, help="The event's position, as `tourney log` shows it.")
    ],
    paths: options.Paths,
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
    with ledger_to_change(paths) as opened, console() as talk:
        redact_with_consent(opened, position, why, agreed=yes, console=talk)
