"""Record, in real processes, what is done to a ledger's files and what is told of its events.

Processes write one log, in one order: each operation is noted and performed under one lock. A
process can die at an operation, as the counts say that it was given.
"""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from tests.support.faults.vfs import Observer, Operation, Sync, SyncFolder

By = Literal["acknowledged", "head"]


class Promise(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Somebody was told that the ledger reaches a position, with this hash there."""

    by: By  # an append that returned, or a reader
    position: int
    chain: bytes


FaultKind = Literal["kill", "kill at a flush"]


class Fault(NamedTuple):
    """At which of its operations, or of its flushes, a process is killed."""

    kind: FaultKind
    at: int


Record = Operation | Promise
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
            if self._is_fatal(operation):
                os.kill(os.getpid(), signal.SIGKILL)
            self.note(operation)
            return perform()

    def _is_fatal(self, operation: Operation) -> bool:
        """Count the operation; say whether the process is killed before it."""
        if self._fault is None or (self._fault.kind != "kill" and not isinstance(operation, Sync)):
            return False
        self._n_operations += 1
        return self._n_operations == self._fault.at

    def _observe_python(self) -> None:
        """See what the ledger flushes by itself, too."""
        fsync = os.fsync

        def on_fsync(handle: int) -> None:
            name = self._name_of(handle)
            with self._in_turn():
                self._around(SyncFolder() if name is None else Sync(name), lambda: 0)
                fsync(handle)

        os.fsync = on_fsync  # type: ignore[assignment]  # in this process

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


def records_in(log: Path) -> Sequence[Record]:
    """Return what was noted, in order."""
    content, records, at = log.read_bytes(), list[Record](), 0
    while at < len(content):
        start = at + _N_LENGTH_BYTES
        at = start + int.from_bytes(content[at:start], "big")
        records.append(_decode(content[start:at]))
    return records
