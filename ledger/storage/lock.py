"""A fair lock between processes: a file beside the ledger, locked by `flock`.

SQLite's own lock goes to whoever polls at the right moment; `flock` serves waiters in order. The
kernel releases it when the holder dies, so it is never left locked.

`ledger/store.py` takes it for each append (`.lock`), and `commands/runs/workspace.py` for a whole
command that spends or generates (`.work`).
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from pathlib import Path
from stat import ST_DEV, ST_INO
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


class NoLock:
    """For a ledger that no other process can see."""

    def held(self) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


OnWait: TypeAlias = Callable[[Holder | None], None]
"""Called once, after two seconds of waiting, with the holder; None if the system does not tell."""


def say_nothing(_holder: Holder | None) -> None:
    """Report no waits."""


class FileLock(AbstractContextManager[None]):
    """A lock on a file, which stays open until `close`."""

    def __init__(self, path: Path, on_wait: OnWait = say_nothing) -> None:
        self._path = str(path)
        self._file = _opened(self._path)
        self._inode = _inode(os.fstat(self._file))
        self._on_wait = on_wait
        self._waits_since: float | None = None  # on the monotonic clock
        self._is_closed = threading.Event()
        self._watch: threading.Thread | None = None

    def close(self) -> None:
        """Close the file."""
        self._is_closed.set()
        os.close(self._file)

    def held(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock, waiting for it if necessary."""
        return self

    def __enter__(self) -> None:
        """Take the lock; release it if interrupted."""
        try:
            self._take()
        except BaseException:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            raise

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take(self) -> None:
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._wait()
            if not self._is_opened_again():
                return

    def _is_opened_again(self) -> bool:
        """Open the lock file again if it was deleted or replaced: others wait at the new one."""
        try:
            if _inode(os.stat(self._path)) == self._inode:  # noqa: PTH116  # Path.stat is slower
                return False
        except FileNotFoundError:
            if not Path(self._path).parent.is_dir():
                return False  # nobody else can take the lock
        again = _opened(self._path)
        os.dup2(again, self._file, inheritable=False)  # which closes, and so unlocks, the old one
        os.close(again)
        self._inode = _inode(os.fstat(self._file))
        return True

    def _wait(self) -> None:
        """Join the kernel's queue: polling could be overtaken for ever."""
        if self._watch is None:
            self._watch = threading.Thread(target=self._tell_of_long_waits, daemon=True)
            self._watch.start()
        self._waits_since = time.monotonic()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        finally:
            self._waits_since = None

    def _tell_of_long_waits(self) -> None:
        """Report long waits from a thread: a timer for each short wait would cost more."""
        told = None
        while not self._is_closed.wait(PATIENCE_S / 4):
            since = self._waits_since
            if since not in {None, told} and time.monotonic() - (since or 0) > PATIENCE_S:
                told = since
                self._on_wait(self._holder())

    def _holder(self) -> Holder | None:
        """Ask the kernel who holds the lock: writing a name each time would cost a flush."""
        inode = str(self._inode[0])
        for line in _lines_of(Path("/proc/locks")):
            _, kind, _, _, pid, place, *_ = line.split()
            if kind == "FLOCK" and place.rpartition(":")[2] == inode:
                command = "".join(_lines_of(Path(f"/proc/{pid}/cmdline")))
                return Holder(int(pid), command.replace("\0", " ").strip())
        return None


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


_inode: Final = itemgetter(ST_INO, ST_DEV)


def _lines_of(path: Path) -> list[str]:
    """Return the lines of a kernel file; none if it does not exist."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
