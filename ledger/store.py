"""The ledger: append facts, read them back in order. One SQLite file, one writer at a time."""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import msgspec

from ledger.chain import GENESIS
from ledger.connection import (
    connect_for_writing,
    immediate_transaction,
    open_for_reading,
    open_in_memory,
    prepare,
    translated,
)
from ledger.errors import CannotRead, CannotWrite, DiskFailed, NetworkFileSystem
from ledger.events.event import EVENTS, Event
from ledger.file_system import flush, network_kind
from ledger.head import Head
from ledger.identity import Digest, StreamId
from ledger.lock import FileLock, Lock, NoLock, OnWait, say_nothing
from ledger.recorded import EARLIEST_US, LATEST_US, Receipt, Recorded, microseconds
from ledger.row import Row, decoded
from ledger.tail import Tail
from ledger.waiting import Append, Line
from ledger.wal import NoWal, Wal, WalFile, wal_of
from ledger.writer import Writer, draft

_LAST_POSITION: Final = 2**63 - 1  # of any SQLite table
_PAGE: Final = 1_000  # rows that one read transaction spans: short, so that the WAL can reset
Columns: TypeAlias = tuple[Any, ...]  # of a row, as the query names them
_EVENTS: Final = (
    "SELECT position, stream, version, recorded_us, chain, type, schema_version, data"
    " FROM event WHERE position > ? AND position <= ?"
)
_OF_TYPES: Final = "{} AND type IN (SELECT value FROM json_each(?))".format
_ROWS: Final = "SELECT * FROM event WHERE position > ? AND position <= ?"
_PAGE_OF: Final = "{} ORDER BY position LIMIT ?".format


def utc_now() -> datetime:
    """Read the clock, in UTC."""
    return datetime.now(UTC)


class Ledger:
    """An append-only sequence of events; opened for writing, for reading, or in memory.

    Threads may share one: appends that wait for the disk at the same time share one flush.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        now: Callable[[], datetime] = utc_now,
        lock: Lock | None = None,
        wal: Wal | None = None,
    ) -> None:
        self._connection = connection
        self._now = now
        self._lock = lock or NoLock()
        self._wal = wal or NoWal()
        self._turn = threading.Lock()  # a connection does one thing at a time
        self._line = Line(self.settle)
        self._tail = Tail()
        self._is_open = True
        self.path = path

    @classmethod
    def open(
        cls,
        path: Path,
        now: Callable[[], datetime] = utc_now,
        *,
        on_wait: OnWait = say_nothing,
        allow_network: bool = False,
    ) -> Self:
        """Open for writing, creating the file where there is none.

        Args:
            path: The file; its lock lies beside it.
            now: The clock that stamps events.
            on_wait: Told whom this waits for, where that takes more than two seconds.
            allow_network: Write on a network file system too.

        Raises:
            LedgerError: The file cannot be used so.
        """
        kind = network_kind(path)
        if kind is not None and not allow_network:
            raise NetworkFileSystem(path, kind)
        with ExitStack() as opened, translated(path, CannotWrite):
            connection = opened.enter_context(closing(connect_for_writing(path)))
            lock = FileLock(path.with_name(f"{path.name}.lock"), on_wait)
            opened.callback(lock.close)
            with lock.held():
                if prepare(connection, path):
                    flush(path.parent)
            wal = WalFile(path)
            opened.pop_all()  # they stay open as long as the ledger
        return cls(connection, path, now, lock, wal)

    @classmethod
    def read_only(cls, path: Path) -> Self:
        """Open a ledger that is there; it can be read while another process writes.

        Raises:
            LedgerError: The file cannot be used so.
        """
        connection = open_for_reading(path)
        return cls(connection, path, wal=WalFile(path) if wal_of(path).exists() else NoWal())

    @classmethod
    def in_memory(cls, now: Callable[[], datetime] = utc_now) -> Self:
        """Make a ledger that is gone when closed: for tests and rehearsals."""
        return cls(open_in_memory(), Path(":memory:"), now)

    def close(self) -> None:
        """Let go of the file; the last to close moves the WAL into it, alone."""
        if self._is_open:
            self._is_open = False
            with self._turn, self._lock.held():
                self._connection.close()
            self._lock.close()
            self._wal.close()

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
    ) -> tuple[Receipt, ...]:
        """Append events to a stream, all or none; on return they are on the disk.

        An event that is there already (same key, same content) gives its old place back.

        Args:
            stream: The tournament they belong to.
            events: In order.
            expected_version: The version that the writer decided on; None asks nothing.

        Raises:
            StaleVersion: Somebody appended to the stream since.
            KeyConflict: A key is there with other content.
            InvalidEvent: An event could not be read back.
            CannotWrite: No room or no permission; nothing was appended.
            DiskFailed: It is not known whether they are on the disk.
        """
        return self._line.pass_through(self.prepare(stream, events, expected_version))

    def prepare(
        self, stream: StreamId, events: Sequence[Event], expected_version: int | None
    ) -> Append:
        """Check events and make them ready for `settle`.

        Raises:
            InvalidEvent: An event could not be read back.
        """
        return Append(stream, [draft(stream, event) for event in events], expected_version)

    def settle(self, appends: Sequence[Append]) -> None:
        """Answer all who wait, in one transaction: that is one flush for all of them."""
        try:
            with self._turn, translated(self.path, CannotWrite), self._lock.held():
                self._write(appends)
            self._wal.flush()
        except (CannotWrite, DiskFailed) as error:
            for each in appends:
                each.answer = error
        except BaseException:
            for each in appends:  # none is known to be on the disk; asked again, a fact is known
                each.answer = None
            raise

    def _write(self, appends: Sequence[Append]) -> None:
        with immediate_transaction(self._connection):
            writer = self._writer()
            for append in appends:
                append.settle(writer)
            writer.flush()
        writer.hand_over()

    @contextmanager
    def adopting(self) -> Iterator[Writer]:
        """Take events of another ledger in, as they are; all when the block ends, or none.

        Raises:
            CannotWrite: No room or no permission; nothing was taken in.
            DiskFailed: It is not known whether they are on the disk.
        """
        with self._turn, translated(self.path, CannotWrite), self._lock.held():
            with immediate_transaction(self._connection):
                writer = self._writer()
                yield writer
                writer.flush()
            writer.hand_over()
        self._wal.flush()

    def _writer(self) -> Writer:
        self._tail.read_on(self._connection)
        return Writer(self._connection, self._tail, microseconds(self._now()))

    def read(
        self,
        *,
        after: int = 0,
        until: int | None = None,
        stream: StreamId | None = None,
        types: Collection[str] | None = None,
    ) -> Iterator[Recorded]:
        """Yield events in order of position.

        Args:
            after: Only events behind this position.
            until: Only events up to this position.
            stream: Only events of this stream.
            types: Only events of these types.

        Raises:
            UnreadableEvent: An event's type, version, shape or time is unknown.
            CannotRead: The file is damaged.
        """
        last = self.head.position if until is None else until
        chosen = [] if types is None else [msgspec.json.encode(sorted(types)).decode()]
        query = _OF_TYPES(_EVENTS) if chosen else _EVENTS
        for page in self.pages(_PAGE_OF(query), after, last, *chosen):
            yield from _recorded(page, stream)

    def rows(self, *, after: int = 0, until: int | None = None) -> Iterator[Row]:
        """Yield events as stored, undecoded: to show, export or merge them.

        Raises:
            CannotRead: The file is damaged.
        """
        last = self.head.position if until is None else until
        for page in self.pages(_PAGE_OF(_ROWS), after, last):
            yield from map(Row._make, page)

    @property
    def connection(self) -> sqlite3.Connection:
        """The open file, for queries of one's own; the triggers guard it."""
        return self._connection

    @property
    def head(self) -> Head:
        """The last position and the chain's value there; position 0 when empty.

        It is on the disk, and so is all that is read up to it: another writer's events may be seen
        before that writer is answered, and a power loss must not take back what was told of them.

        Raises:
            CannotRead: The file is damaged.
            DiskFailed: It cannot be told what is on the disk.
        """
        last = self.select("SELECT position, chain FROM event ORDER BY position DESC LIMIT 1")
        [(position, chain)] = last or [(0, GENESIS)]
        if not isinstance(chain, bytes):
            raise CannotRead(self.path, f"the row at position {position} is damaged")
        self._wal.flush()
        return Head(position, Digest(chain.hex()))

    def chain_at(self, position: int) -> Digest | None:
        """Return the chain's value at a position; None where the ledger does not reach it."""
        if position == 0:
            return Digest(GENESIS.hex())
        if position > _LAST_POSITION:
            return None
        found = self.select("SELECT chain FROM event WHERE position = ?", position)
        return Digest(found[0][0].hex()) if found else None

    def streams(self) -> tuple[StreamId, ...]:
        """Return the streams in the order in which they began."""
        begun = self.select("SELECT stream FROM event WHERE version = 1 ORDER BY position")
        return tuple(StreamId(stream) for (stream,) in begun)

    def position_at(self, at: datetime) -> int:
        """Return the last position before which all was recorded by a time; 0 where there is none.

        After a merge an event may be older than the one before it; a prefix that is cut at the
        first later event holds nothing that was not known then.
        """
        [(first_later,)] = self.select(
            "SELECT min(position) FROM event WHERE recorded_us > ?", microseconds(at)
        )
        return self.head.position if first_later is None else int(first_later) - 1

    def select(self, query: str, *parameters: str | bytes | int) -> list[Columns]:
        """Return all rows of a query of one's own.

        Raises:
            CannotRead: The file is damaged.
        """
        try:
            with self._turn:
                return self._connection.execute(query, parameters).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise CannotRead(self.path, str(error)) from error

    def pages(self, query: str, after: int, *parameters: str | int) -> Iterator[list[Columns]]:
        """Yield the rows of a query page by page, each in a short transaction of its own.

        Args:
            query: Gives positions first, and in order; its parameters are the position that it
                begins behind, then the others, then the size of a page.
            after: Where it begins.
            parameters: The others.

        Raises:
            CannotRead: The file is damaged.
        """
        while page := self.select(query, after, *parameters, _PAGE):
            yield page
            if page[-1][0] <= after:
                raise CannotRead(self.path, f"positions do not go on behind {after}")
            after = page[-1][0]


def _recorded(page: Sequence[Columns], stream: StreamId | None) -> Iterator[Recorded]:
    """Decode a page of events; what cannot be read is looked at again to say why."""
    decoders = EVENTS.decoders
    for position, of, version, recorded_us, link, type_, schema_version, data in page:
        if stream is not None and of != stream:
            continue
        try:
            event = decoders[type_, schema_version](data)
            is_sound = EARLIEST_US <= recorded_us <= LATEST_US
        except (LookupError, TypeError, ValueError):
            is_sound = False
        if not is_sound:
            event = decoded(position, recorded_us, type_, schema_version, data)
        yield Recorded(position, of, version, recorded_us, link, event)
