"""How far the work is, on stderr."""

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

from commands.cli.shared.output import stderr
from commands.cli.tables.render import shown
from commands.errors import Refused
from commands.ports import OnProgress
from commands.spending.consent import Offer, require_consent, require_within_cap


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


def require_somebody(what: str, *, agreed: bool) -> None:
    """Find out at once that nobody is there to agree.

    Raises:
        Refused: Nobody agreed beforehand, and there is no terminal to ask at.
    """
    if not agreed and not _is_at_a_terminal():
        raise Refused(
            f"asking {what} costs money, and nobody is here to agree: say --yes, and --max-usd to"
            " set a cap; `tourney plan` tells what it costs"
        )


def agree_to(offer: Offer, *, agreed: bool) -> None:
    """Ask whether an offer may be paid for.

    Raises:
        Refused: It is above the cap, or nobody agreed; nothing was sent.
    """
    require_within_cap(offer)
    require_consent(
        offer,
        agreed=agreed,
        is_terminal=_is_at_a_terminal(),
        confirm=_says_yes,
    )


def _is_at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # None where it was closed


def _says_yes(question: str) -> bool:
    """Ask in plain words, on a line that nothing is painted over; whatever is no yes is a no."""
    put_bars_away()
    typer.echo(f"{shown(question)} [y/N]: ", nl=False, err=True)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C and Ctrl-D do not end the line
            typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}
