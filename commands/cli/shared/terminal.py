"""Progress and questions on the terminal, all on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich import progress
from rich.console import Console as RichConsole
from rich.text import Text

from commands.cli.shared.output import say, stderr
from commands.ports import Console, OnProgress
from projections.artifacts.escaping import escaped


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
        tenth = done * 10 // max(total, 1)  # of nothing, all is done
        if told.get(what) != tenth:
            told[what] = tenth
            say(f"{what}: {done} of {total}")

    return tell


class _Bars:
    """A bar for each phase of the work, from its first report on."""

    def __init__(self) -> None:
        self._shown: progress.Progress | None = None
        self._tasks: dict[str, progress.TaskID] = {}

    def draw(self, what: str, done: int, total: int) -> None:
        if self._shown is None:
            self._shown, self._tasks = progress_bars(stderr()), {}
            self._shown.start()
        if what not in self._tasks or done < self._shown.tasks[self._tasks[what]].completed:
            self._tasks[what] = self._shown.add_task(what, total=total)  # begun, or begun again
        self._shown.update(self._tasks[what], completed=done, total=total)

    def put_away(self) -> None:
        """Stop painting the bars; later output stands below them."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def progress_bars(
    on: RichConsole, get_time: Callable[[], float] | None = None
) -> progress.Progress:
    """Return bars that fit 80 columns: phase, how many of how many, rate, and time left."""
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.MofNCompleteColumn(),
        _Rate(),
        progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=on,
        get_time=get_time,
    )


class _Rate(progress.ProgressColumn):
    """How many are done in a second, or in a minute if that is less than one."""

    def render(self, task: progress.Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{60 * speed:.1f}/min")


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
    typer.echo(f"{escaped(question)} [y/N]: ", nl=False, err=True)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C and Ctrl-D do not end the line
            typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}
