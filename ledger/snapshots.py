"""Stored states of projections, in a file beside the ledger that may be deleted at any time.

A snapshot is of use only while the ledger still has the history that it was folded from: so it
carries the chain's value at its position, and the version of the projection that made it.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from ledger.identity import Digest

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS snapshot_1 (
  projection TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  position INTEGER NOT NULL,
  chain TEXT NOT NULL,
  state BLOB NOT NULL) STRICT
"""


class Snapshot(NamedTuple):
    """A state, and what it was folded from."""

    projection: str
    version: int  # of the projection's code
    position: int
    chain: Digest
    state: bytes


class Snapshots:
    """The side file of one ledger."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute(_TABLE)

    @classmethod
    def beside(cls, ledger: Path) -> Self:
        """Open the side file of a ledger; a damaged one is begun again.

        In a folder that cannot be written nothing is kept, and views are folded each time.
        """
        path = ledger.with_name(f"{ledger.name}.views")
        try:
            found = cls(sqlite3.connect(path))
            found.load("", 0)  # a damaged table tells when it is read
        except sqlite3.OperationalError:
            return cls(sqlite3.connect(":memory:"))
        except sqlite3.DatabaseError:
            path.unlink()
            return cls(sqlite3.connect(path))
        return found

    def __enter__(self) -> Self:
        """Return the snapshots themselves."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self._connection.close()

    def load(self, projection: str, version: int) -> Snapshot | None:
        """Return the newest state of a projection; None where its code was another."""
        found = self._connection.execute(
            "SELECT * FROM snapshot_1 WHERE projection = ? AND version = ?", (projection, version)
        ).fetchone()
        return None if found is None else Snapshot._make(found)

    def save(self, snapshots: Iterable[Snapshot]) -> None:
        """Keep states in place of older ones; where nothing can be written, keep none."""
        with suppress(sqlite3.OperationalError), self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO snapshot_1 VALUES (?, ?, ?, ?, ?)", snapshots
            )
