"""Write results to standard output, and everything else to standard error."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

from commands.cli.tables.render import (
    Format,
    as_json,
    print_lines,
    print_table,
    typed_columns,
    typed_rows,
)
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from ledger.errors import TourneyError
from ledger.identity import Json
from projections.artifacts.escaping import escaped, escaped_json, markdown_text

_UNBOUNDED: Final = 10_000  # columns
_WITHDRAWN: Final = frozenset({"latex", "vega"})  # formats
Screen: TypeAlias = Callable[[Console, int | None], Iterable[Text]]
"""Gives the lines for a console so many columns wide; None: as wide as they are."""


class NotShown(TourneyError):
    """Standard output did not take the whole result."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"cannot write to standard output: {why}; the result is incomplete:"
            " free some space and run the same command again"
        )
        self.why = why


def format_named(name: str) -> Format:
    """Return a format; of those that are no more, say what has the same numbers."""
    try:
        return Format(name)
    except ValueError:
        instead = "; --json has the same numbers, for a script to write it" * (name in _WITHDRAWN)
        known = ", ".join(map(repr, map(str, Format)))
        raise typer.BadParameter(f"{name!r} is not one of {known}{instead}.") from None


def write_table(table: Table, chosen: Format) -> None:
    """Print a table on stdout; formats without room for notes have them on stderr."""
    if chosen is Format.PARQUET:
        _write_parquet(table)
    else:
        with _arriving():
            print_table(table, chosen, _stdout())
    if chosen is Format.MD:
        with _arriving():
            sys.stdout.write("".join(f"\n{markdown_text(note)}\n" for note in table.notes))
    elif chosen not in {Format.TABLE, Format.JSON}:
        for note in table.notes:
            say(note)


def write_screen(drawn: Screen) -> None:
    """Print a screen of its own, in place of a table, on stdout."""
    console = _stdout()
    width = console.width if console.width < _UNBOUNDED else None
    with _arriving():
        print_lines(drawn(console, width), console)


def _write_parquet(table: Table) -> None:
    """Write a table as a Parquet file, which no terminal can show."""
    if sys.stdout.isatty():
        raise ConfigurationError(["--format parquet writes bytes: add `> FILE.parquet`"])
    kinds = typed_columns(table)
    content = parquet_of(kinds, typed_rows(table, kinds))
    with _arriving():
        sys.stdout.buffer.write(content)


def parquet_of(columns: Mapping[str, type], rows: Iterable[Mapping[str, object]]) -> bytes:
    """Return rows as a Parquet file; what it is written by is imported for no other format."""
    from commands.importing.formats.parquet import parquet_content  # noqa: PLC0415  # pyarrow is slow

    return parquet_content(columns, rows)


def write_json(value: Json) -> None:
    """Print a value as JSON on stdout."""
    with _arriving():
        sys.stdout.write(as_json(value, indent=2))


def write_lines(lines: Iterable[bytes]) -> None:
    """Print lines on stdout as they are; on a terminal, invisible characters are escaped."""
    with _arriving():
        if sys.stdout.isatty():
            lines = (escaped_json(line.decode()).encode() for line in lines)
        sys.stdout.buffer.writelines(lines)


def say(message: str) -> None:
    """Print a message on stderr; if nobody can read it, as on a full disk, it is left out."""
    with suppress(OSError):
        stderr().print(Text(escaped(message)), soft_wrap=True)


@cache
def stderr() -> Console:
    """Return the console of stderr, which prints above progress bars."""
    return _StandardError(stderr=True)


class _StandardError(Console):
    """Falls silent once its reader is gone, as under `2>&1 | head`: paid work goes on."""

    def on_broken_pipe(self) -> None:
        """Print no more; rich would end the process, and lose the answers under way."""
        self.quiet = True


@contextmanager
def _arriving() -> Iterator[None]:
    """Flush standard output, so that a failed write is an error and not lost at exit.

    Raises:
        NotShown: A write failed. A closed pipe is not a failure: its reader has had enough.
    """
    if sys.stdout is None:
        raise NotShown("it is closed")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # swallows the rest
        raise NotShown(str(error)) from error


def _stdout() -> Console:
    """Return a console on stdout; files and pipes are as wide as the widest row.

    An exported COLUMNS says how wide a pipe is, as of a pager or of this project's pages.
    """
    console = Console()
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        return console
    return Console(width=_UNBOUNDED)
