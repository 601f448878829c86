"""A ledger that several users share: reading leaves nothing that keeps others from writing.

SQLite's readers make the side files of a WAL (-wal, -shm) where there are none, with their own user
and the ledger's mode of that moment, and do not remove them. So a reader who is not the ledger's
owner makes none: beside a writer it uses the writer's, and alone it reads the file as it lies.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from ledger.errors import CannotWrite, ChangedMeanwhile
from ledger.storage.files import beside, wal_of

_ROOT: Final = 0  # what it makes, SQLite gives to the ledger's owner


def may_leave_files(path: Path) -> bool:
    """Whether this user can make side files, and as the ledger's owner would make them."""
    is_owner = os.geteuid() in {_ROOT, path.stat().st_uid}
    places = (path, beside(path, "").parent)
    return is_owner and all(os.access(place, os.W_OK, effective_ids=True) for place in places)


@contextmanager
def kept_open(path: Path) -> Iterator[None]:
    """Keep writers from closing a ledger, which removes its side files, until the block ends."""
    try:
        lock = os.open(beside(path, ".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # nobody wrote here, or this user may not know
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def refusal_of_change(path: Path) -> Callable[[], None]:
    """Look at a file that is read as it lies, without locks, for as long as nobody writes.

    Returns:
        What raises ChangedMeanwhile if somebody opened the file for writing since, or changed it:
        what was read may be of two times.

    Raises:
        OSError: It does not exist.
    """
    before = _state(path)

    def require_unchanged() -> None:
        with suppress(FileNotFoundError):
            if not wal_of(path).exists() and _state(path) == before:
                return
        raise ChangedMeanwhile(path)

    return require_unchanged


def _state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return (status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns)


def require_writable(path: Path) -> None:
    """Refuse a ledger whose log cannot be written: a reader of another program may have made it.

    Nothing is opened here: POSIX releases all of a process's locks on a file when any handle of it
    is closed, and SQLite's are on the log's index.

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
        status = file.stat()
        if not os.access(file, os.W_OK, effective_ids=True):
            yield f"{file} (uid {status.st_uid}, mode {S_IMODE(status.st_mode):o})"
