"""A fair lock between processes: a file beside the ledger, held by `flock`.

SQLite's own lock is taken by whoever polls at the right moment; waiters of `flock` are served in
their order. The kernel lets go when the holder dies, so nothing is ever left locked.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

PATIENCE_S: Final = 2.0  # how long a wait goes unmentioned


class Holder(NamedTuple):
    """The process that has the lock."""

    pid: int
    command: str

    def __str__(self) -> str:
        """Return words for a user; a dead process has no name, and may have left a child."""
        if not self.command:
            return f"process {self.pid}, or a child that outlived it"
        return f"process {self.pid} ({self.command})"


class Lock(Protocol):
    """What keeps other processes out."""

    def held(self) -> AbstractContextManager[None]:
        """Return a block's worth of being alone."""

    def close(self) -> None:
        """Let go for good."""


class NoLock:
    """For a ledger that no other process can see."""

    def held(self) -> AbstractContextManager[None]:
        """Return at once."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


OnWait: TypeAlias = Callable[[Holder | None], None]
"""Told once, after two seconds, whom a wait is for; None where the system does not tell."""


def say_nothing(_holder: Holder | None) -> None:
    """Wait in silence."""


class FileLock(AbstractContextManager[None]):
    """One lock file; open as long as this is."""

    def __init__(self, path: Path, on_wait: OnWait = say_nothing) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._on_wait = on_wait
        self._waits_since: float | None = None  # on the monotonic clock
        self._is_closed = threading.Event()
        self._watch: threading.Thread | None = None

    def close(self) -> None:
        """Let go of the file."""
        self._is_closed.set()
        os.close(self._file)

    def held(self) -> AbstractContextManager[None]:
        """Keep other processes out for a block; wait for one that is in."""
        return self

    def __enter__(self) -> None:
        """Take it; who is interrupted in here never comes to give it back."""
        try:
            self._take()
        except BaseException:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            raise

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()

    def _wait(self) -> None:
        """Join the kernel's queue: who polls instead may be overtaken for ever."""
        if self._watch is None:
            self._watch = threading.Thread(target=self._tell_of_long_waits, daemon=True)
            self._watch.start()
        self._waits_since = time.monotonic()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        finally:
            self._waits_since = None

    def _tell_of_long_waits(self) -> None:
        """Look on from a thread: most waits are short, and a timer for each would cost more."""
        told = None
        while not self._is_closed.wait(PATIENCE_S / 4):
            since = self._waits_since
            if since not in {None, told} and time.monotonic() - (since or 0) > PATIENCE_S:
                told = since
                self._on_wait(self._holder())

    def _holder(self) -> Holder | None:
        """Ask the kernel: writing a name at each turn would cost every append a flush."""
        inode = str(os.fstat(self._file).st_ino)
        for line in _lines_of(Path("/proc/locks")):
            _, kind, _, _, pid, place, *_ = line.split()
            if kind == "FLOCK" and place.rpartition(":")[2] == inode:
                command = "".join(_lines_of(Path(f"/proc/{pid}/cmdline")))
                return Holder(int(pid), command.replace("\0", " ").strip())
        return None


def _lines_of(path: Path) -> list[str]:
    """Return what a file of the kernel says; nothing where there is no such file."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
