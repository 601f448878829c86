"""How far the work is, on stderr."""

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

from commands.progress import OnProgress


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
