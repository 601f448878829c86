"""Use case: watch events arrive."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ledger.errors import CannotRead
from ledger.identity import Digest
from ledger.recorded import Row
from ledger.store import Ledger


def follow(path: Path, after: int, wait: Callable[[], None]) -> Iterator[Row]:
    """Yield events behind a position, and whatever is appended while somebody asks.

    It is opened anew for each look: a file that nobody was writing may be open as one that never
    changes, and would be for as long as one looks.

    Args:
        path: The ledger; others append to it.
        after: The last position known.
        wait: Returns when it is time to look again; raise in it to end.

    Raises:
        CannotRead: What lies there now is another ledger, or an older copy.
    """
    chain: Digest | None = None  # at the last position known
    while True:
        with Ledger.read_only(path) as ledger:
            if chain not in {None, ledger.chain_at(after)}:
                raise CannotRead(path, f"it was replaced: position {after} is no longer the same")
            for row in ledger.rows(after=after):
                after = row.position
                yield row
            chain = ledger.chain_at(after)
        wait()
