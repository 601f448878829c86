"""Use case: watch events arrive."""

from collections.abc import Callable, Iterator

from ledger.row import Row
from ledger.store import Ledger


def follow(ledger: Ledger, after: int, wait: Callable[[], None]) -> Iterator[Row]:
    """Yield events behind a position, and whatever is appended while somebody asks.

    Args:
        ledger: Open for reading; others append to it.
        after: The last position known.
        wait: Returns when it is time to look again; raise in it to end.
    """
    while True:
        for row in ledger.rows(after=after):
            after = row.position
            yield row
        wait()
