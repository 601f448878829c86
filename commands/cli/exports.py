"""`tourney export`: the ledger in another form."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from commands.cli.options import DEFAULT_CONFIG, AsOfOption, ConfigOption, LedgerOption
from commands.cli.place import head_at, ledger_path
from commands.cli.workshop import require_sound
from commands.run_folder import write_whole
from ledger.exchange import export_lines
from ledger.store import Ledger

app = typer.Typer(no_args_is_help=True)


@app.callback()
def export() -> None:
    """Write the ledger in another form."""


@app.command(name="events")
def export_events(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; without it, stdout.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Write all events as lines of JSON. Example: tourney export events -o events.jsonl."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        require_sound(opened)
        lines = export_lines(opened.rows(until=head_at(opened, as_of).position))
        if output is None:
            sys.stdout.buffer.writelines(lines)
        else:
            write_whole(output, lines)
