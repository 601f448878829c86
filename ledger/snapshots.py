"""Stored states of projections, in a file beside the ledger that may be deleted at any time.

A snapshot is of use only while the ledger still has the history that it was folded from: so it
carries the chain's value at its position, and the version of the projection that made it. And
only if it is whole: a bit that flipped on the disk would show as a wrong count.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from ledger.identity import Digest, digest_of_bytes

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS snapshot_2 (
  projection TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  position INTEGER NOT NULL,
  chain TEXT NOT NULL,
  state BLOB NOT NULL,
  digest TEXT NOT NULL) STRICT
"""
_NEWEST: Final = """
SELECT projection, version, position, chain, state, digest FROM snapshot_2
WHERE projection = ? AND version = ?
"""
# SQLite's own messages quote names out of the file, and those may be no text any more.
_DAMAGE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)


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
        # A damaged page would tell only when it is read or written.
        [(found,)] = connection.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(found)

    @classmethod
    def beside(cls, ledger: Path) -> Self:
        """Open the side file of a ledger; a damaged one is begun again.

        In a folder that cannot be written nothing is kept, and views are folded each time.
        """
        path = ledger.with_name(f"{ledger.name}.views")
        try:
            return cls(sqlite3.connect(path))
        except sqlite3.OperationalError:
            return cls(sqlite3.connect(":memory:"))
        except _DAMAGE:
            return cls._begun_again(path)

    @classmethod
    def _begun_again(cls, path: Path) -> Self:
        try:
            path.unlink()
        except OSError:
            return cls(sqlite3.connect(":memory:"))
        return cls(sqlite3.connect(path))

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
        """Return the newest state of a projection; None where its code was another, or damaged."""
        try:
            found = self._connection.execute(_NEWEST, (projection, version)).fetchone()
        except _DAMAGE:
            return None
        if found is None:
            return None
        *columns, digest = found
        snapshot = Snapshot._make(columns)
        return snapshot if _digest_of(snapshot) == digest else None

    def save(self, snapshots: Iterable[Snapshot]) -> None:
        """Keep states in place of older ones; where nothing can be written, keep none."""
        rows = [(*snapshot, _digest_of(snapshot)) for snapshot in snapshots]
        with suppress(*_DAMAGE), self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO snapshot_2 VALUES (?, ?, ?, ?, ?, ?)", rows
            )


def _digest_of(snapshot: Snapshot) -> Digest:
    return digest_of_bytes(msgspec.json.encode(snapshot))
