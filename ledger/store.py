"""The ledger: append facts, read them back in order. One SQLite file, one writer at a time."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from ledger.chain import GENESIS
from ledger.connection import (
    immediate_transaction,
    open_for_reading,
    open_for_writing,
    open_in_memory,
)
from ledger.errors import CannotRead, CannotWrite, StaleVersion
from ledger.events.registry import Event
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded
from ledger.row import Row, microseconds
from ledger.writer import Writer

_PAGE: Final = 1_000  # rows that one read transaction spans: short, so that the WAL can reset


def utc_now() -> datetime:
    """Read the clock, in UTC."""
    return datetime.now(UTC)


class Head(NamedTuple):
    """The last event's place, and the chain's value there: it names the whole history."""

    position: int
    chain: Digest


class Ledger:
    """An append-only sequence of events; opened for writing, for reading, or in memory."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._connection = connection
        self._now = now
        self.path = path

    @classmethod
    def open(cls, path: Path, now: Callable[[], datetime] = utc_now) -> Self:
        """Open for writing, creating the file where there is none.

        Raises:
            LedgerError: The file cannot be used so.
        """
        return cls(open_for_writing(path), path, now)

    @classmethod
    def read_only(cls, path: Path) -> Self:
        """Open a ledger that is there; it can be read while another process writes.

        Raises:
            LedgerError: The file cannot be used so.
        """
        return cls(open_for_reading(path), path)

    @classmethod
    def in_memory(cls, now: Callable[[], datetime] = utc_now) -> Self:
        """Make a ledger that is gone when closed: for tests and rehearsals."""
        return cls(open_in_memory(), Path(":memory:"), now)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the ledger itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def append(
        self, stream: StreamId, events: Sequence[Event], *, expected_version: int | None = None
    ) -> tuple[Recorded, ...]:
        """Append events to a stream, all or none; on return they are on the disk.

        An event that is there already (same key, same content) gives its old place back.

        Args:
            stream: The tournament they belong to.
            events: In order.
            expected_version: The version that the writer decided on; None asks nothing.

        Raises:
            StaleVersion: Somebody appended to the stream since.
            KeyConflict: A key is there with other content.
            CannotWrite: No room or no permission; nothing was appended.
        """
        try:
            with immediate_transaction(self._connection):
                writer = Writer(self._connection, stream, microseconds(self._now()))
                is_stale = expected_version not in {None, writer.version}
                if is_stale and not all(map(writer.has, events)):
                    raise StaleVersion(stream, expected=expected_version, actual=writer.version)
                return tuple(writer.find(event) or writer.write(event) for event in events)
        except sqlite3.OperationalError as error:
            raise CannotWrite(self.path, str(error)) from error

    def read(
        self, *, after: int = 0, until: int | None = None, stream: StreamId | None = None
    ) -> Iterator[Recorded]:
        """Yield events in order of position.

        Args:
            after: Only events behind this position.
            until: Only events up to this position.
            stream: Only events of this stream.

        Raises:
            UnreadableEvent: An event's type, version, shape or time is unknown.
            CannotRead: The file is damaged.
        """
        for row in self.rows(after=after, until=until):
            if stream is None or row.stream == stream:
                yield row.recorded()

    def rows(self, *, after: int = 0, until: int | None = None) -> Iterator[Row]:
        """Yield events as stored: for audits, which must not trust the decoder."""
        last = self.head.position if until is None else until
        query = "SELECT * FROM event WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
        while page := self._select(query, after, last, _PAGE):
            yield from map(Row._make, page)
            after = page[-1][0]

    @property
    def connection(self) -> sqlite3.Connection:
        """The open file, for queries of one's own; the triggers guard it."""
        return self._connection

    @property
    def head(self) -> Head:
        """The last position and the chain's value there; position 0 when empty."""
        last = self._select("SELECT position, chain FROM event ORDER BY position DESC LIMIT 1")
        [(position, chain)] = last or [(0, GENESIS)]
        return Head(position, Digest(chain.hex()))

    def streams(self) -> tuple[StreamId, ...]:
        """Return the streams in the order in which they began."""
        begun = self._select("SELECT stream FROM event WHERE version = 1 ORDER BY position")
        return tuple(StreamId(stream) for (stream,) in begun)

    def position_at(self, at: datetime) -> int:
        """Return the last position recorded at or before a time; 0 where there is none."""
        [(n_events,)] = self._select(
            "SELECT count(*) FROM event WHERE recorded_us <= ?", microseconds(at)
        )
        return int(n_events)

    def _select(self, query: str, *parameters: str | int) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise CannotRead(self.path, str(error)) from error
