"""The terminal: how far the work is, and questions; all of it on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from commands.cli.shared.output import say, stderr
from commands.cli.tables.render import shown
from commands.ports import Console, OnProgress


@contextmanager
def progress_on_stderr() -> Iterator[OnProgress]:
    """Give a listener: a bar on a terminal, elsewhere one plain line per tenth of the work."""
    if not stderr().is_terminal:
        yield _plain_lines()
        return
    try:
        yield _BARS.draw
    finally:
        _BARS.put_away()


def put_bars_away() -> None:
    """Leave the bars as they stand, and paint them no more; what is drawn next stands below."""
    _BARS.put_away()


def _plain_lines() -> OnProgress:
    told: dict[str, int] = {}

    def tell(what: str, done: int, total: int) -> None:
        tenth = done * 10 // total
        if told.get(what) != tenth:
            told[what] = tenth
            stderr().print(Text(f"{what}: {done} of {total}"))

    return tell


class _Bars:
    """A bar for each piece of work, from the first word of it on."""

    def __init__(self) -> None:
        self._shown: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def draw(self, what: str, done: int, total: int) -> None:
        if self._shown is None:
            self._shown, self._tasks = _begun(), {}
        if what not in self._tasks:
            self._tasks[what] = self._shown.add_task(what, total=total)
        self._shown.update(self._tasks[what], completed=done, total=total)

    def put_away(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def _begun() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=stderr())
    progress.start()
    return progress


_BARS: Final = _Bars()  # a process has one terminal: whoever asks there has to find what is on it


@contextmanager
def console() -> Iterator[Console]:
    """Give what a use case talks through: lines, bars and questions on stderr."""
    with progress_on_stderr() as on_progress:
        yield Console(say, _confirm if _is_at_a_terminal() else None, on_progress)


def _is_at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # None where it was closed


def _confirm(question: str) -> bool:
    """Ask on a line that no bar is painted over; everything but yes is a no."""
    put_bars_away()
    typer.echo(f"{shown(question)} [y/N]: ", nl=False, err=True)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C and Ctrl-D do not end the line
            typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}
