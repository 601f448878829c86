"""stdout carries the result only; words about it go to stderr."""

import json
from typing import Final

from rich.console import Console
from rich.text import Text

from commands.hostile import shown, shown_json
from commands.render import Format, print_table
from commands.tables.table import Table
from ledger.identity import Json

_UNBOUNDED: Final = 10_000  # columns


def write(table: Table, output_format: Format, *, as_json: bool) -> None:
    """Print a result on stdout; what a format has no place for goes to stderr."""
    chosen = Format.JSON if as_json else output_format
    print_table(table, chosen, _stdout())
    if chosen not in {Format.TABLE, Format.JSON}:
        for note in table.notes:
            say(note)


def write_json(value: Json) -> None:
    """Print a value as JSON on stdout."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    _stdout().print(Text(shown_json(text)), soft_wrap=True)


def say(message: str) -> None:
    """Print a line about the work on stderr."""
    Console(stderr=True).print(Text(shown(message)), soft_wrap=True)


def _stdout() -> Console:
    """Return a console on stdout; a file or pipe is as wide as its widest row."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNBOUNDED)
