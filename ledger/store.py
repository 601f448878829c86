"""The ledger: append events and read them back in order. One SQLite file, one writer at a time."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from ledger.errors import AlteredSchema, CannotWrite, LedgerError, NetworkFileSystem
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.reader import LedgerReader
from ledger.recorded import Receipt, microseconds
from ledger.storage import schema
from ledger.storage.connection import (
    connect_for_writing,
    differences,
    flush_log,
    immediate_transaction,
    is_failed_disk,
    open_for_reading,
    open_in_memory,
    prepare,
    translated_errors,
)
from ledger.storage.files import beside, flush, wal_of
from ledger.storage.lock import FileLock, OnWait, say_nothing
from ledger.storage.place import (
    PlaceWatch,
    foreign_kind,
    nothing_left_behind,
    require_one_name,
)
from ledger.storage.redaction import erase
from ledger.storage.sharing import require_writable
from ledger.storage.writer import EventWriter, draft


def utc_now() -> datetime:
    """Read the clock, in UTC."""
    return datetime.now(UTC)


class Ledger(LedgerReader):
    """An append-only sequence of events, opened for writing, for reading, or in memory.

    Threads may share it: they take turns. Once the disk has failed, it writes nothing more.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        now: Callable[[], datetime] = utc_now,
        lock: FileLock | None = None,
        watch: PlaceWatch | None = None,
        require_unchanged: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(connection, path, require_unchanged)
        self._watch = watch or PlaceWatch(path)
        self._now = now
        self._lock = lock
        self._is_open = True
        self._failure: LedgerError | None = None  # of the disk

    @classmethod
    def open(
        cls,
        path: Path,
        now: Callable[[], datetime] = utc_now,
        *,
        on_wait: OnWait = say_nothing,
        allow_network: bool = False,
    ) -> Self:
        """Open for writing; create the file if it does not exist.

        Args:
            path: The file; its lock file is beside it.
            now: The clock that stamps events.
            on_wait: Called with the process that holds the lock after two seconds of waiting.
            allow_network: Write on a file system that is not known to be local, too.

        Raises:
            LedgerError: The file cannot be opened for writing.
        """
        kind = foreign_kind(path)
        if kind is not None and not allow_network:
            raise NetworkFileSystem(path, kind)
        with ExitStack() as opened, translated_errors(path, CannotWrite):
            require_one_name(path)
            lock = FileLock(beside(path, ".lock"), on_wait)
            opened.callback(lock.close)
            with lock:  # so that nobody closes it, which removes what is looked for
                was_there = path.exists()
                with nothing_left_behind(path, was_there=was_there), ExitStack() as begun:
                    connection = begun.enter_context(closing(connect_for_writing(path)))
                    require_writable(path)
                    if prepare(connection, path):
                        flush(path.parent)
                    flush_log(path)
                    watch = PlaceWatch(path, was_there=was_there)
                    watch.add(beside(path, ""))
                    watch.add(wal_of(path))
                    begun.pop_all()  # it stays open as long as the ledger
            opened.pop_all()
        return cls(connection, path, now, lock, watch)

    @classmethod
    def read_only(cls, path: Path) -> Self:
        """Open an existing ledger for reading, even while another process writes.

        Raises:
            LedgerError: The file cannot be opened for reading.
        """
        connection, require_unchanged = open_for_reading(path)
        return cls(connection, path, require_unchanged=require_unchanged)

    @classmethod
    def in_memory(cls, now: Callable[[], datetime] = utc_now) -> Self:
        """Create a ledger that is lost when closed: for tests and rehearsals."""
        return cls(open_in_memory(), Path(":memory:"), now)

    def close(self) -> None:
        """Close the file; the last process to close it merges the WAL into it.

        A file that this process began is removed if nothing was appended to it.
        """
        if self._is_open:
            self._is_open = False
            with self._turn, self._lock or nullcontext():
                is_unused = self._watch.is_new and not self._has_events()
                if self._watch.has_moved:  # SQLite would leave the newest events at the old name
                    with suppress(sqlite3.OperationalError):
                        self._connection.execute(schema.CHECKPOINT)
                self._connection.close()
                if is_unused:
                    self._watch.remove()
            if self._lock is not None:
                self._lock.close()

    def __enter__(self) -> Self:
        """Return the ledger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def append(
        self, stream: StreamId, events: Sequence[Event], *, expected_version: int | None = None
    ) -> tuple[Receipt, ...]:
        """Append events to a stream, all or none; when this returns they are on the disk.

        An event that is recorded already (same key, same content) returns its recorded position.

        Args:
            stream: The tournament they belong to.
            events: In order.
            expected_version: The stream's version that the writer decided on; None: any.

        Raises:
            StaleVersion: Another writer appended to the stream since.
            KeyConflict: An event's key is recorded with other content.
            InvalidEvent: An event could not be read back.
            CannotWrite: No room or no permission; nothing was appended.
            DiskFailed: The disk did not confirm the append.
            AlteredSchema: Another program changed the tables or triggers meanwhile.
        """
        drafts = [draft(stream, event) for event in events]
        with self.writing() as writer:
            return writer.append(stream, drafts, expected_version)

    @contextmanager
    def alone(self, on_wait: OnWait = say_nothing) -> Iterator[None]:
        """Let other processes that ask for this wait until the block ends; they may still read.

        Raises:
            CannotWrite: The lock file cannot be made.
        """
        work = beside(self.path, ".work")
        with ExitStack() as held:
            with translated_errors(self.path, CannotWrite):
                lock = FileLock(work, on_wait)
                held.callback(lock.close)
                held.enter_context(lock)
                self._watch.add(work)  # nothing is written once it was moved or deleted
            yield

    @contextmanager
    def writing(self) -> Iterator[EventWriter]:
        """Write in one transaction: all of it is on the disk when the block ends, or nothing.

        Raises:
            CannotWrite: No room or no permission; nothing was written.
            DiskFailed: The disk did not confirm it.
            AlteredSchema: What was inserted is not there; nothing was written.
            LedgerMoved: The file was moved, deleted or replaced; nothing was written.
            HardLinked: The file got a second name; nothing was written.
        """
        with self._turn_to_write():
            self._watch.require_unmoved()
            with immediate_transaction(self._connection):
                writer = EventWriter(self._connection, microseconds(self._now()))
                yield from self._recorded(writer)
            if writer.n_new == 0:  # so nothing was flushed, and another may have left what is known
                flush_log(self.path)

    @contextmanager
    def _turn_to_write(self) -> Iterator[None]:
        """Wait for the turn of this thread and process; write nothing once the disk has failed.

        After a flush that failed, nobody knows what the disk keeps of what follows it.
        """
        with self._turn:
            if not self._is_open:
                raise ValueError(f"{self.path} was closed; nothing can be appended to it")
            if self._failure is not None:
                raise self._failure
            try:
                with translated_errors(self.path, CannotWrite), self._lock or nullcontext():
                    yield
            except LedgerError as error:
                if is_failed_disk(error.__cause__):
                    self._failure = error
                raise

    def _recorded(self, writer: EventWriter) -> Iterator[EventWriter]:
        """Let events be inserted; no foreign trigger may refuse, drop or remove them."""
        why = "an insert did not do what it says"
        try:
            yield writer
            if writer.has_recorded:
                return
        except sqlite3.IntegrityError as error:
            why = str(error)
        raise AlteredSchema(self.path, [why, *differences(self._connection)])

    def redact(self, position: int, why: str) -> None:
        """Remove the texts of an event for good, and record that, and why.

        Raises:
            CannotRedact: There is no such event, its texts are removed already, or they must stay.
            NotErased: It is recorded, and the old bytes may still be in the file.
            LedgerError: As for `writing`.
        """
        with self.writing() as writer:
            writer.redact(position, why)
        self.erase()

    def erase(self) -> None:
        """Write the file anew: neither it nor its log keeps a byte of what was redacted.

        Raises:
            NotErased: Another process reads an older state of the file, or there is no room.
        """
        with self._turn_to_write():
            erase(self._connection, self.path)

    def _has_events(self) -> bool:
        """Say whether anything was appended; where that cannot be read, perhaps."""
        try:
            return self._connection.execute("SELECT 1 FROM event LIMIT 1").fetchone() is not None
        except sqlite3.Error:
            return True
