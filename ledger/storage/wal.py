"""The write-ahead log beside a ledger: a commit is in it at once, and on the disk once flushed.

SQLite would flush it within the commit (synchronous = FULL), while all other writers wait for the
lock. Here a writer lets go of the lock first, so that the next one places its events while the disk
works: early lock release. A flush covers all that stands in the log by then, so whoever is answered
builds on nothing that a power loss could take back.
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
    """What has to reach the disk before anybody is told of it."""

    def require_sound(self) -> None:
        """Refuse to write what could not be flushed.

        Raises:
            DiskFailed: A flush failed before.
        """

    def flush(self) -> None:
        """Return when all that is committed is on the disk.

        Raises:
            DiskFailed: It may not be.
        """

    def close(self) -> None:
        """Let go of it."""


class NoWal:
    """For a ledger in memory, or a file that nobody writes: SQLite reads it without a log."""

    def require_sound(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class WalFile:
    """The log of a file that a connection is open on: as long as one is, SQLite keeps the log."""

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
        """Refuse to write what could not be flushed.

        After a failure there is no second try: the system forgets what it could not write, and
        would say of the next flush that all is well.

        Raises:
            DiskFailed: A flush failed before.
        """
        if self._failure is not None:
            raise self._failure

    def flush(self) -> None:
        """Return when all that is committed is on the disk.

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
        """Let go of it."""
        with self._in_use:
            os.close(self._file)
            self._failure = DiskFailed(self._path, "it was closed during an append")


def wal_for_reading(path: Path) -> Wal:
    """Return the log of a ledger that a connection reads, or a stand-in where there is none."""
    try:
        return WalFile(path)
    except FileNotFoundError:
        return NoWal()


def require_writable(path: Path) -> None:
    """Refuse a log that cannot be written though the ledger may: a reader made it.

    SQLite gives what a reader makes the reader's owner and the ledger's mode of that moment, and
    no reader removes it. Nothing is opened here: POSIX lets go of a process's locks on a file when
    any handle of it is closed, and SQLite's are on the log's index.

    Raises:
        CannotWrite: It, or its index, is such.
    """
    refused = [*_refused(wal_of(path)), *_refused(beside(path, "-shm"))]
    if refused:
        raise CannotWrite(
            path,
            f"no write permission for {' and '.join(refused)}, which a reader may have made; ask"
            " their owner or root to change it (chmod, chown); delete nothing, it may hold events",
        )


def _refused(file: Path) -> Iterator[str]:
    """Describe a file that is there and cannot be written."""
    with suppress(FileNotFoundError):
        found = file.stat()
        if not os.access(file, os.W_OK, effective_ids=True):
            yield f"{file} (uid {found.st_uid}, mode {S_IMODE(found.st_mode):o})"


def wal_of(path: Path) -> Path:
    """Return where SQLite keeps a database's log."""
    return beside(path, "-wal")
