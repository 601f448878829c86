"""`tourney checkpoint` and `tourney backup`: keep what proves a ledger, and a copy of it."""

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
)
from commands.cli.place import head_at, ledger_path
from commands.cli.streams import say, write
from commands.counted import counted
from commands.render import Format
from commands.tables.keeping import checkpoint_table
from ledger.exchange import back_up, unfinished
from ledger.store import Ledger


def checkpoint(
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
    as_of: AsOfOption = None,
    output_format: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Print what names the ledger's history, to be kept elsewhere. Example: tourney checkpoint."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        head = head_at(opened, as_of)
    write(checkpoint_table(head), output_format, as_json=as_json)


def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    config: ConfigOption = DEFAULT_CONFIG,
    ledger: LedgerOption = None,
) -> None:
    """Copy the ledger, be it written to or not. Example: tourney backup safe/tournament.db."""
    with Ledger.read_only(ledger_path(ledger, config)) as opened:
        back_up(opened, to)
    with Ledger.read_only(to) as copy:
        say(f"{counted(copy.head.position, 'event')} in {to}, checkpoint {copy.head}")
    for each in unfinished(to):
        say(f"{each} is of a backup that was killed or is being made; remove it if none is")
