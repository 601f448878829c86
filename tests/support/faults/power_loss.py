"""Appends on a disk that records, and what a power loss leaves of its files."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from sqlite3 import Connection
from typing import Final, Literal, NamedTuple, cast

import apsw
import numpy as np

from ledger.events.judging import VerdictReceived
from ledger.identity import JudgeId
from ledger.recorded import StoredEvent
from ledger.storage import schema
from ledger.storage.wal import NoWal, wal_of
from ledger.store import Ledger
from tests.support.builders.events import NOON, STREAM, key
from tests.support.faults.disks import (
    Create,
    Delete,
    Operation,
    RecordingDisk,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)

SECTOR: Final = 512  # bytes that a disk writes whole or not at all

Fate = Literal["kept", "dropped", "torn"]
_FATES: Final[tuple[Fate, ...]] = ("kept", "dropped", "torn")


def after_power_loss(log: Sequence[Operation], rng: np.random.Generator) -> dict[str, bytes]:
    """Return the files, by name, that a power loss at the end of a log may leave.

    What was synced is there. Of the rest each truncation is kept or dropped, each write kept,
    dropped or torn between sectors; names change in order, up to some change.
    """
    synced = {each.file: at for at, each in enumerate(log) if isinstance(each, Sync)}
    contents: dict[int, bytearray] = {}
    odds = rng.dirichlet((0.5, 0.5, 0.5))  # so that some states lose little and others much
    for at, operation in enumerate(log):
        if isinstance(operation, Write | Truncate):
            is_synced = at < synced.get(operation.file, 0)
            fate = "kept" if is_synced else _FATES[rng.choice(3, p=odds)]
            _change(contents.setdefault(operation.file, bytearray()), operation, fate, rng)
    names = _names_after(log, rng)
    return {name: bytes(contents.get(file, b"")) for name, file in names.items()}


def without_syncs(log: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return what a disk does that says to have synced and has not."""
    return tuple(each for each in log if not isinstance(each, Sync | SyncFolder))


def _change(
    content: bytearray, operation: Write | Truncate, fate: Fate, rng: np.random.Generator
) -> None:
    match operation, fate:
        case Truncate(), "kept":
            del content[operation.size :]
            _grow(content, operation.size)  # where a write before it was dropped
        case Write(), "kept":
            _put(content, operation)
        case Write(), "torn":
            for sector in _sectors(operation):
                if rng.random() < 0.5:
                    _put(content, sector)
        case _:
            return  # dropped; a truncation cannot be torn


def _put(content: bytearray, write: Write) -> None:
    _grow(content, write.offset)
    content[write.offset : write.offset + len(write.data)] = write.data


def _grow(content: bytearray, size: int) -> None:
    content.extend(bytes(max(size - len(content), 0)))


def _sectors(write: Write) -> Iterator[Write]:
    """Yield the parts of a write that lie in one sector each."""
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield Write(write.file, start, write.data[start - write.offset : stop - write.offset])
        start = stop


def _names_after(log: Sequence[Operation], rng: np.random.Generator) -> dict[str, int]:
    changes = [(at, each) for at, each in enumerate(log) if isinstance(each, Create | Delete)]
    synced = max((at for at, each in enumerate(log) if isinstance(each, SyncFolder)), default=-1)
    n_synced = sum(at < synced for at, _ in changes)
    n_kept = rng.integers(n_synced, len(changes), endpoint=True)
    names: dict[str, int] = {}
    for _, change in changes[:n_kept]:
        match change:
            case Create(file, name):
                names[name] = file
            case Delete(name):
                del names[name]
    return names


Flushes = Literal["all", "checkpoints", "none"]
"""What reaches the disk in time: as the ledger has it; but for commits; nothing."""

N_OPENINGS: Final = 2  # a run is resumed: SQLite then deletes its WAL and makes another
N_BATCHES: Final = 3  # of the first writer, per opening
TURNS_OF_SECOND: Final = 0.5
MAX_BATCH: Final = 20
REPLY_BYTES: Final = (300, 20_000)
WAL_PAGES: Final = 10  # until a checkpoint: one follows in the midst of the appends

_CREATION: Final = (schema.PAGE_SIZE, schema.WAL, "BEGIN IMMEDIATE", *schema.CREATION, "COMMIT")


class Acknowledged(NamedTuple):
    """So many events were said to be recorded when the disk had done so much."""

    n_events: int
    n_operations: int


class Recording(NamedTuple):
    """A run from the ledger's creation to its close."""

    name: str  # of the file
    log: tuple[Operation, ...]
    acknowledged: tuple[Acknowledged, ...]
    rows: tuple[StoredEvent, ...]

    def acknowledged_at(self, n_operations: int) -> int:
        """Return how many events were acknowledged when the disk had done so much."""
        return max(each.n_events for each in self.acknowledged if each.n_operations <= n_operations)

    def began_with(self, rows: tuple[StoredEvent, ...]) -> bool:
        """Say whether these rows are whole batches of the run, from its first on."""
        whole_batches = {each.n_events for each in self.acknowledged}
        return len(rows) in whole_batches and self.rows[: len(rows)] == rows


class RecordedWal(NoWal):
    """A ledger's log on a recording disk; while the ledger waits for it, others have their turn."""

    def __init__(
        self, disk: RecordingDisk, path: Path, flushes: Flushes, meanwhile: Callable[[], None]
    ) -> None:
        self._disk, self._label, self._flushes = disk, wal_of(path).name, flushes
        self._meanwhile = meanwhile

    def flush(self) -> None:
        """Force the log to the disk, if that is not what is left out."""
        self._meanwhile()
        if self._flushes == "all":
            self._disk.sync(self._label)


class Run:
    """Two writers of one ledger: while the first waits for the disk, the second may append."""

    def __init__(self, path: Path, flushes: Flushes, rng: np.random.Generator) -> None:
        self._path, self._flushes, self._rng = path, flushes, rng
        self._disk = RecordingDisk(f"recording {path}")
        self._batches = _batches(rng)
        self._acknowledged = [Acknowledged(0, 0)]

    def record(self) -> Recording:
        """Create a ledger, append to it and resume, and note all of it."""
        rows: tuple[StoredEvent, ...] = ()
        for _ in range(N_OPENINGS):
            with self._opened(_rest) as second, self._opened(self._at_times(second)) as first:
                for _ in range(N_BATCHES):
                    self._append(first)
                rows = tuple(second.rows())
        self._disk.unregister()
        return Recording(self._path.name, tuple(self._disk.log), tuple(self._acknowledged), rows)

    def _opened(self, meanwhile: Callable[[], None]) -> Ledger:
        wal = RecordedWal(self._disk, self._path, self._flushes, meanwhile)
        return Ledger(_open(self._disk, self._path, self._flushes), self._path, _noon, wal=wal)

    def _at_times(self, second: Ledger) -> Callable[[], None]:
        return lambda: self._append(second) if self._rng.random() < TURNS_OF_SECOND else None

    def _append(self, ledger: Ledger) -> None:
        receipts = ledger.append(STREAM, next(self._batches))
        n_events = receipts[-1].recorded.position
        self._acknowledged.append(Acknowledged(n_events, len(self._disk.log)))


def _rest() -> None:
    """Leave the turn to nobody."""


def _noon() -> datetime:
    return NOON


def _batches(rng: np.random.Generator) -> Iterator[Sequence[VerdictReceived]]:
    numbers = count()
    while True:
        n_events = rng.integers(1, MAX_BATCH, endpoint=True)
        yield [_verdict(next(numbers), rng) for _ in range(n_events)]


def _verdict(number: int, rng: np.random.Generator) -> VerdictReceived:
    n_bytes = int(np.exp(rng.uniform(*np.log(REPLY_BYTES))))
    return VerdictReceived(
        query_key=key(str(number)),
        judge=JudgeId("reference"),
        verdict="TIE",
        reply=rng.bytes(n_bytes // 2).hex(),
        parser="final-line@1",
        stop_reason="end_turn",
        model="chrF2",
    )


class _OwnDiskConnection(apsw.Connection):
    """What the ledger uses of a connection is the same, but for an attribute."""

    total_changes = property(apsw.Connection.total_changes)


def _open(disk: RecordingDisk, path: Path, flushes: Flushes) -> Connection:
    """Open as `ledger.storage.connection` does, on a disk of ours."""
    is_new = not path.exists()
    connection = _OwnDiskConnection(str(path), vfs=disk.name)
    for statement in (*(_CREATION if is_new else ()), *schema.EVERY_CONNECTION):
        connection.execute(statement)
    if flushes == "none":
        connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    return cast(Connection, connection)
