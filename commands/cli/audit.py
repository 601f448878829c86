"""`tourney log`, `show`, `verify` and `replay`: look at what happened, and check it."""

from pathlib import Path
from typing import Annotated

import typer

from commands.cli.options import (
    DEFAULT_CONFIG,
    AsOfOption,
    ConfigOption,
    FormatOption,
    JsonOption,
    LedgerOption,
    LimitOption,
    TournamentOption,
)
from commands.cli.place import ledger_path, position_of, stream_of
from commands.cli.streams import say, write, write_json
from commands.counted import counted
from commands.errors import AuditDisagrees, ConfigurationError
from commands.find_event import find_events
from commands.render import Format
from commands.replay import replay as replay_runs
from commands.tables.history import differences_table, event_fields, faults_table, log_table
from ledger.audit import audit
from ledger.events.registry import EVENT_TYPES
from ledger.search import newest
from ledger.store import Ledger


def log(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    as_of: AsOfOption = None,
    event_type: Annotated[
        str | None, typer.Option("--type", help="Only events of this type.")
    ] = None,
    limit: LimitOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """List events, the newest last. Example: tourney log --type VerdictReceived --limit 20."""
    if event_type is not None and event_type not in EVENT_TYPES:
        raise ConfigurationError([f"--type {event_type!r} is none of: {', '.join(EVENT_TYPES)}"])
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        until = position_of(opened, as_of)
        table = log_table(newest(opened, until=until, event_type=event_type, limit=limit))
    write(table, output_format, as_json=as_json)


def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A position, a label, or the start of a key.")
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
) -> None:
    """Show the events that an ID means, whole, as JSON. Example: tourney show recall_001."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        found = find_events(opened, name)
    for each in found:
        write_json(event_fields(each))


def verify(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Check the hash chain, and that every event can be read. Example: tourney verify."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        head = opened.head
        faults = tuple(audit(opened.rows(until=head.position)))
    write(faults_table(faults, head), output_format, as_json=as_json)
    if faults:
        raise AuditDisagrees(f"{counted(len(faults), 'fault')} in {ledger_path(ledger, config)}")


def replay(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    tournament: TournamentOption = None,
    as_of: AsOfOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the rebuilt runs into this folder.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Compare this run's folder byte for byte.")
    ] = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Fold again from the first event, and compare byte for byte. Example: tourney replay."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        replayed = replay_runs(
            opened,
            stream_of(opened, tournament, config),
            until=position_of(opened, as_of),
            against=against,
            out=out,
        )
    write(differences_table(replayed), output_format, as_json=as_json)
    if replayed.differences:
        files = ", ".join(f"{each.run}/{each.path}" for each in replayed.differences)
        raise AuditDisagrees(f"not what the ledger says: {files}")
    if not replayed.runs:
        say("no run was published yet; `tourney run` publishes one")
