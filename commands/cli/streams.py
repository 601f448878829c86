"""stdout carries the result only; progress and words about it go to stderr."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from commands.hostile import shown
from commands.progress import OnProgress
from commands.render import Format, print_table
from commands.tables.table import Table


def write(table: Table, output_format: Format, *, as_json: bool) -> None:
    """Print a result on stdout."""
    print_table(table, Format.JSON if as_json else output_format, Console())


def write_text(text: str) -> None:
    """Print text that is already in its final form on stdout."""
    Console().print(Text(shown(text)), soft_wrap=True)


def say(message: str) -> None:
    """Print a line about the work on stderr."""
    Console(stderr=True).print(Text(shown(message)), soft_wrap=True)


@contextmanager
def progress_on_stderr() -> Iterator[OnProgress]:
    """Give a listener: a bar on a terminal, elsewhere one plain line per tenth of the work."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=total)

        yield draw


def _plain_lines(console: Console) -> OnProgress:
    told: dict[str, int] = {}

    def tell(what: str, done: int, total: int) -> None:
        tenth = done * 10 // total
        if told.get(what) != tenth:
            told[what] = tenth
            console.print(Text(f"{what}: {done} of {total}"))

    return tell
