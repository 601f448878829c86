"""Use case: watch events arrive."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ledger.row import Row
from ledger.store import Ledger


def follow(path: Path, after: int, wait: Callable[[], None]) -> Iterator[Row]:
    """Yield events behind a position, and whatever is appended while somebody asks.

    It is opened anew for each look: a file that nobody was writing may be open as one that never
    changes, and would be for as long as one looks.

    Args:
        path: The ledger; others append to it.
        after: The last position known.
        wait: Returns when it is time to look again; raise in it to end.
    """
    while True:
        with Ledger.read_only(path) as ledger:
            for row in ledger.rows(after=after):
                after = row.position
                yield row
        wait()
