"""A lock between processes: a file beside the ledger, locked by `flock`.

The kernel serves waiters in order, and releases the lock when its holder dies, so it is never left
locked.

`ledger/store.py` takes it for each append (`.lock`), and `commands/runs/workspace.py` for a whole
command that spends or generates (`.work`).
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Timer
from typing import Final, NamedTuple, TypeAlias

PATIENCE_S: Final = 2.0  # how long a wait goes unmentioned


class Holder(NamedTuple):
    """The process that holds the lock."""

    pid: int
    command: str

    def __str__(self) -> str:
        """Describe the process; a dead one has no name, and a child of it may hold the lock."""
        if not self.command:
            return f"process {self.pid}, or a child that outlived it"
        return f"process {self.pid} ({self.command})"


OnWait: TypeAlias = Callable[[Holder | None], None]
"""Called once, after two seconds of waiting, with the holder; None if the system does not tell."""


def say_nothing(_holder: Holder | None) -> None:
    """Report no waits."""


class FileLock(AbstractContextManager[None]):
    """A lock on a file, which stays open until `close`."""

    def __init__(self, path: Path, on_wait: OnWait = say_nothing) -> None:
        self._path = path
        self._file = _opened(path)
        self._on_wait = on_wait
        self.patience_s = PATIENCE_S

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> None:
        """Take the lock, waiting for it if necessary; release it if interrupted."""
        try:
            self._take()
            while not self._is_in_place():  # it was deleted or replaced: others wait at the new one
                again = _opened(self._path)
                os.dup2(again, self._file, inheritable=False)  # which closes and unlocks the old
                os.close(again)
                self._take()
        except BaseException:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            raise

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            telling = Timer(self.patience_s, lambda: self._on_wait(self._holder()))
            telling.daemon = True
            telling.start()
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            finally:
                telling.cancel()

    def _is_in_place(self) -> bool:
        """Say whether others find the file that is locked; nobody does in a folder that is gone."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            return not self._path.parent.is_dir()

    def _holder(self) -> Holder | None:
        """Ask the kernel who holds the lock: writing a name each time would cost a flush."""
        inode = str(os.fstat(self._file).st_ino)
        for line in _lines_of(Path("/proc/locks")):
            _, kind, _, _, pid, place, *_ = line.split()
            if kind == "FLOCK" and place.rpartition(":")[2] == inode:
                command = "".join(_lines_of(Path(f"/proc/{pid}/cmdline")))
                return Holder(int(pid), command.replace("\0", " ").strip())
        return None


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _lines_of(path: Path) -> list[str]:
    """Return the lines of a kernel file; none if it does not exist."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
