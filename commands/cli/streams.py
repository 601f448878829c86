"""stdout carries the result only; words about it go to stderr."""

from typing import Final

from rich.console import Console
from rich.text import Text

from commands.hostile import shown
from commands.render import Format, print_table
from commands.tables.table import Table

_UNBOUNDED: Final = 10_000  # columns


def write(table: Table, output_format: Format, *, as_json: bool) -> None:
    """Print a result on stdout."""
    print_table(table, Format.JSON if as_json else output_format, _stdout())


def write_text(text: str) -> None:
    """Print text that is already in its final form on stdout."""
    _stdout().print(Text(shown(text)), soft_wrap=True)


def say(message: str) -> None:
    """Print a line about the work on stderr."""
    Console(stderr=True).print(Text(shown(message)), soft_wrap=True)


def _stdout() -> Console:
    """Return a console on stdout; a file or pipe is as wide as its widest row."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNBOUNDED)
