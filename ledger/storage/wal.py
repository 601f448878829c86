"""The write-ahead log (WAL): move it into the ledger's file, whatever becomes of flushes.

SQLite moves as much of the log as its readers allow, and flushes the file only when all is moved.
If that flush fails, the system forgets everything that was written to the file since the last one,
but SQLite moves again only what it moved last. And it reports no failure of a move that it makes by
itself, after a commit. So the ledger moves its log, and after a failure writes all of it again. It
holds SQLite's write lock until then: else another program could finish the move and cut the log.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from ledger.storage import schema
from ledger.storage.connection import (
    BUSY_TIMEOUT_S,
    connect,
    immediate_transaction,
    is_failed_flush,
)
from ledger.storage.files import open_handle, wal_of, write_again

PAGES_UNTIL_MOVED: Final = 1_000  # of the log, as SQLite has it

_MOVE: Final = "PRAGMA wal_checkpoint(PASSIVE)"  # no reader is waited for, and none waits
_HEADER_BYTES: Final = 32  # of the log, and then 24 before each page: sqlite.org/walformat.html
_FRAME_HEADER_BYTES: Final = 24


def move_log(connection: sqlite3.Connection, path: Path) -> None:
    """Move what the log holds into the file, as far as readers allow.

    Raises:
        sqlite3.OperationalError: The disk did not confirm it, not even once it was written again.
    """
    try:
        with (
            not_waiting(connection),
            immediate_transaction(connection),
            _written_again(path),
            _another_connection(path) as another,
        ):
            another.execute(_MOVE)
    except sqlite3.OperationalError as error:
        if is_failed_flush(error):
            raise
        # there is no room, or another program writes: the log keeps the events until a later move


@contextmanager
def _written_again(path: Path) -> Iterator[None]:
    """Write all again if a flush fails within this context, as long as nobody can cut the log."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        if isinstance(error, OSError) or is_failed_flush(error):
            with suppress(sqlite3.Error, OSError):  # the disk may be gone for good
                _write_all_again(path)
        raise


@contextmanager
def not_waiting(connection: sqlite3.Connection) -> Iterator[None]:
    """Do not wait for other programs' locks within this context."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1_000:.0f}")


def settle_log(connection: sqlite3.Connection, path: Path) -> None:
    """Put what the log holds on the disk, and into the file, whatever became of flushes before.

    The system forgets what it could not write, and reports the next flush as good. If a process
    died of that, its last append is in the log until the power fails, and then the log ends before
    it: so it is written again, before it spoils the file or other appends come after it. Then the
    pages that were moved before are written again.
    """
    with immediate_transaction(connection), _written_again(path):
        is_whole = _write_all_again(path)
    if is_whole:  # so that nothing is moved, and no flush can fail, without the write lock
        with not_waiting(connection):  # for readers of what it holds
            connection.execute(schema.CHECKPOINT)


def _write_all_again(path: Path) -> bool:
    """Write the log again, and what was moved from it; return whether that is all of it.

    The caller holds SQLite's write lock.
    """
    write_again(wal_of(path))
    moved = _moved(path)
    if moved.n_moved > 0:
        _write_moved_pages_again(path, moved)
    return moved.n_moved == moved.n_pages


class settled_if_a_flush_fails:  # noqa: N801  # as immediate_transaction
    """Settle the log once more where SQLite could not flush, and raise its error.

    What was not committed stays at the log's end, off the disk. As long as one process has the
    ledger open, nobody takes it for committed. But a reader who closes it last leaves the log, and
    who opens it next would see that commit, and tell of it.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Settle the log if that was the error."""
        if isinstance(error, sqlite3.OperationalError) and is_failed_flush(error):
            with suppress(sqlite3.Error, OSError):  # the disk may be gone for good
                settle_log(self._connection, self._path)


class _Moved(NamedTuple):
    """How many pages the log has, and how many of them, from the first on, are in the file."""

    n_pages: int
    n_moved: int


def _write_moved_pages_again(path: Path, moved: _Moved) -> None:
    """Write what the log moved into the file before, and flush the file.

    The caller holds SQLite's write lock: so the log stays as it is. Another process may move pages
    of it meanwhile, but none that was moved already, unless the log has a newer one of that number.
    """
    file = open_handle(path)
    with wal_of(path).open("rb") as log:
        page_size = int.from_bytes(os.pread(log.fileno(), 4, 8), "big")
        for number, at in _last_of_each_number(log.fileno(), page_size, moved.n_pages).items():
            if at < moved.n_moved:
                page = os.pread(log.fileno(), page_size, _place(at, page_size))
                os.pwrite(file, page, (number - 1) * page_size)
    os.fsync(file)


@contextmanager
def _another_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file again: within a transaction of a connection, SQLite moves no log by it."""
    with closing(connect(str(path))) as another:
        for pragma in schema.EVERY_CONNECTION:
            another.execute(pragma)
        # SQLite looks for a log as it reads; and of what was moved anything may be spoiled.
        another.execute("PRAGMA user_version").fetchone()
        yield another


def _moved(path: Path) -> _Moved:
    """Move the log, and return how far; another process may be moving it just now."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    with _another_connection(path) as another:
        while True:
            [(is_busy, n_pages, n_moved)] = another.execute(_MOVE)
            if not is_busy:
                return _Moved(n_pages, n_moved)
            if time.monotonic() > deadline:
                raise sqlite3.OperationalError("another process moves the log for too long")
            time.sleep(0.01)


def _last_of_each_number(log: int, page_size: int, n_pages: int) -> Mapping[int, int]:
    """Return where in the log the newest page of each number is, of those that are in the file."""
    newest: dict[int, int] = {}
    n_in_file = 0
    for at in range(n_pages):
        place = _place(at, page_size) - _FRAME_HEADER_BYTES
        numbers = os.pread(log, 8, place)
        newest[int.from_bytes(numbers[:4], "big")] = at
        n_in_file = int.from_bytes(numbers[4:], "big") or n_in_file  # a commit says that
    return {number: at for number, at in newest.items() if number <= n_in_file}


def _place(at: int, page_size: int) -> int:
    return _HEADER_BYTES + at * (_FRAME_HEADER_BYTES + page_size) + _FRAME_HEADER_BYTES
