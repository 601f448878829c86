"""The write-ahead log (WAL): a commit is in it at once, and on the disk once flushed.

SQLite would flush it within the commit (synchronous = FULL), while all other writers wait for the
lock. Here a writer releases the lock first, so that the next can place its events while the disk
works: early lock release. A flush covers all that is in the log by then, so no answered append
depends on anything that a power loss could undo.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final, Protocol

from ledger.errors import CannotWrite, DiskFailed
from ledger.storage.files import beside

_flush_content: Final = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Wal(Protocol):
    """A log that must be flushed before an append is answered."""

    def require_sound(self) -> None:
        """Refuse to write after a failed flush.

        Raises:
            DiskFailed: A flush failed before.
        """

    def flush(self) -> None:
        """Return when everything committed is on the disk.

        Raises:
            DiskFailed: It may not be.
        """

    def close(self) -> None:
        """Close it."""


class NoWal:
    """No log: for a ledger in memory, or a file that nobody is writing."""

    def require_sound(self) -> None:
        """Do nothing."""

    flush = close = require_sound


class WalFile:
    """The log file of an open connection; SQLite keeps the file until the last one closes."""

    def __init__(self, path: Path) -> None:
        """Open the log of a ledger.

        Raises:
            OSError: There is none.
        """
        self._path = path
        self._file = os.open(wal_of(path), os.O_RDONLY | os.O_CLOEXEC)
        self._failure: DiskFailed | None = None
        self._in_use = threading.Lock()  # a descriptor that was closed may be another file's

    def require_sound(self) -> None:
        """Refuse to write after a failed flush.

        A second try would prove nothing: the system forgets what it could not write, and reports
        the next flush as good.

        Raises:
            DiskFailed: A flush failed before.
        """
        if self._failure is not None:
            raise self._failure

    def flush(self) -> None:
        """Return when everything committed is on the disk.

        Raises:
            DiskFailed: It may not be.
        """
        with self._in_use:
            self.require_sound()
            try:
                _flush_content(self._file)
            except OSError as error:
                self._failure = DiskFailed(self._path, str(error))
        self.require_sound()

    def close(self) -> None:
        """Close it."""
        with self._in_use:
            os.close(self._file)
            self._failure = DiskFailed(self._path, "it was closed during an append")


def wal_for_reading(path: Path) -> Wal:
    """Return the log of a ledger that is read, or a stand-in if there is none."""
    try:
        return WalFile(path)
    except FileNotFoundError:
        return NoWal()


def require_writable(path: Path) -> None:
    """Refuse a ledger whose log cannot be written: a reader of another user created it.

    SQLite gives such a log the reader's owner and the ledger's mode of that moment, and no reader
    removes it. Nothing is opened here: POSIX releases all of a process's locks on a file when any
    handle of it is closed, and SQLite's are on the log's index.

    Raises:
        CannotWrite: The log, or its index, cannot be written.
    """
    refused = [*_refused(wal_of(path)), *_refused(beside(path, "-shm"))]
    if refused:
        raise CannotWrite(
            path,
            f"no write permission for {' and '.join(refused)}, which a reader may have made; ask"
            " their owner or root to change it (chmod, chown); delete nothing, it may hold events",
        )


def _refused(file: Path) -> Iterator[str]:
    """Describe a file that exists and cannot be written."""
    with suppress(FileNotFoundError):
        found = file.stat()
        if not os.access(file, os.W_OK, effective_ids=True):
            yield f"{file} (uid {found.st_uid}, mode {S_IMODE(found.st_mode):o})"


def wal_of(path: Path) -> Path:
    """Return the path of a database's log."""
    return beside(path, "-wal")
