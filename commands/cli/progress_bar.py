"""How far the work is, on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from commands.cli.streams import stderr
from commands.progress import OnProgress


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
