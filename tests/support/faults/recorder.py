"""Record, in real processes, what is done to a ledger's files and what is told of its events.

Processes write one log, in one order: each operation is noted and performed under one lock. A
process can die at an operation, or have a flush fail, as the counts say that it was given.
"""

import errno
import fcntl
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from tests.support.faults.vfs import Observer, Operation, Sync, SyncFolder, Write

By = Literal["acknowledged", "head", "foreign"]


class Promise(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Somebody was told that the ledger reaches a position, with this hash there."""

    by: By  # an append that returned, a reader of ours, or SQL of another program
    position: int
    chain: bytes


class Died(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A process was killed; perhaps because a flush had failed."""

    of_failed_flush: bool


class Opened(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A process of ours has opened the ledger."""

    for_writing: bool


FaultKind = Literal["kill", "kill at a flush", "failed flush", "failed flush, then kill"]


class Fault(NamedTuple):
    """What befalls a process, and at which of its operations, or of its flushes."""

    kind: FaultKind
    at: int


Record = Operation | Promise | Died | Opened
_N_LENGTH_BYTES: Final = 4
_encode: Final = msgspec.msgpack.encode
_decode: Final = msgspec.msgpack.Decoder(Record).decode


class Recorder:
    """Notes what this process does to the files of a folder."""

    def __init__(self, log: Path, folder: Path, fault: Fault | None = None) -> None:
        """Begin to record.

        Args:
            log: Of all processes.
            folder: Of the ledger.
            fault: What befalls this process.
        """
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._folder = folder
        self._fault = fault
        self._n_operations = self._depth = 0
        self._observer = Observer(self._around)
        self._observe_python()

    def note(self, record: Record) -> None:
        """Note what was told, or what happened."""
        with self._in_turn():
            content = _encode(record)
            os.write(self._log, len(content).to_bytes(_N_LENGTH_BYTES, "big") + content)

    def _around(self, operation: Operation, perform: Callable[[], int]) -> int:
        with self._in_turn():
            kind = self._fault_at(operation)
            if kind in {"kill", "kill at a flush"}:
                self._die(of_failed_flush=False)
            if kind is None:
                self.note(operation)
                return perform()
            if isinstance(operation, Sync):
                self.note(Sync(operation.name, has_failed=True))
            if kind == "failed flush, then kill":
                self._die(of_failed_flush=True)
            return sqlite3.SQLITE_IOERR_FSYNC

    def _fault_at(self, operation: Operation) -> FaultKind | None:
        """Count the operation; return what comes with it."""
        if self._fault is None or (self._fault.kind != "kill" and not isinstance(operation, Sync)):
            return None
        self._n_operations += 1
        return self._fault.kind if self._n_operations == self._fault.at else None

    def _observe_python(self) -> None:
        """See what the ledger flushes and writes by itself, too."""
        fsync, pwrite = os.fsync, os.pwrite

        def on_fsync(handle: int) -> None:
            name = self._name_of(handle)
            with self._in_turn():
                if self._around(SyncFolder() if name is None else Sync(name), lambda: 0):
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                fsync(handle)

        def on_pwrite(handle: int, data: bytes, offset: int) -> int:
            write = Write(self._name_of(handle) or "", offset, data)
            return self._around(write, lambda: pwrite(handle, data, offset))

        os.fsync, os.pwrite = on_fsync, on_pwrite  # type: ignore[assignment]  # in this process

    def _name_of(self, handle: int) -> str | None:
        """Return the name of an open file of the folder; None for the folder itself."""
        opened = os.fstat(handle)
        files = (each for each in self._folder.iterdir() if os.path.samestat(each.stat(), opened))
        return next((each.name for each in files), None)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Take turns with the other processes; the kernel ends the turn of one that dies."""
        if self._depth == 0:
            fcntl.flock(self._log, fcntl.LOCK_EX)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                fcntl.flock(self._log, fcntl.LOCK_UN)

    def _die(self, *, of_failed_flush: bool) -> None:
        self.note(Died(of_failed_flush))
        os.kill(os.getpid(), signal.SIGKILL)


def records_in(log: Path) -> Sequence[Record]:
    """Return what was noted, in order."""
    content, records, at = log.read_bytes(), list[Record](), 0
    while at < len(content):
        start = at + _N_LENGTH_BYTES
        at = start + int.from_bytes(content[at:start], "big")
        records.append(_decode(content[start:at]))
    return records
