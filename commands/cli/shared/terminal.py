"""Progress and questions on the terminal, all on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich import progress
from rich.text import Text

from commands.cli.shared.output import say, stderr
from commands.ports import Console, OnProgress
from commands.runs.report.text import shown


@contextmanager
def progress_on_stderr() -> Iterator[OnProgress]:
    """Report progress: bars on a terminal, elsewhere a plain line for each tenth of the work."""
    if not stderr().is_terminal:
        yield _plain_lines()
        return
    try:
        yield _BARS.draw
    finally:
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
    """A bar for each piece of work, from its first report on."""

    def __init__(self) -> None:
        self._shown: progress.Progress | None = None
        self._tasks: dict[str, progress.TaskID] = {}

    def draw(self, what: str, done: int, total: int) -> None:
        if self._shown is None:
            self._shown, self._tasks = _drawn(), {}
            self._shown.start()
        if what not in self._tasks:
            self._tasks[what] = self._shown.add_task(what, total=total)
        self._shown.update(self._tasks[what], completed=done, total=total)

    def put_away(self) -> None:
        """Stop painting the bars; later output stands below them."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def _drawn() -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=stderr(),
    )


_BARS: Final = _Bars()  # one terminal a process: a question must stop its bars


@contextmanager
def console() -> Iterator[Console]:
    """Yield the console of a use case: messages, bars and questions on stderr."""
    with progress_on_stderr() as on_progress:
        is_at_a_terminal = sys.stdin is not None and sys.stdin.isatty()  # None: closed
        yield Console(say, _confirm if is_at_a_terminal else None, on_progress)


def _confirm(question: str) -> bool:
    """Ask a question below the bars; every answer but yes is a no."""
    _BARS.put_away()
    typer.echo(f"{shown(question)} [y/N]: ", nl=False, err=True)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C and Ctrl-D do not end the line
            typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}
