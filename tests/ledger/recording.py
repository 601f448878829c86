"""A run's appends on a recording disk: all that it did, and what it was told is recorded."""

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
from ledger.storage.wal import wal_of
from ledger.store import Ledger
from tests.builders import NOON, STREAM, key
from tests.ledger.recording_disk import Operation, RecordingDisk

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


class RecordedWal:
    """A ledger's log on a recording disk; while the ledger waits for it, others have their turn."""

    def __init__(
        self, disk: RecordingDisk, path: Path, flushes: Flushes, meanwhile: Callable[[], None]
    ) -> None:
        self._disk, self._label, self._flushes = disk, wal_of(path).name, flushes
        self._meanwhile = meanwhile

    def require_sound(self) -> None:
        """Do nothing: it is, until the power goes."""

    def flush(self) -> None:
        """Force the log to the disk, if that is not what is left out."""
        self._meanwhile()
        if self._flushes == "all":
            self._disk.sync(self._label)

    def close(self) -> None:
        """Do nothing: nothing is open."""


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


def _open(disk: RecordingDisk, path: Path, flushes: Flushes) -> Connection:
    """Open as `ledger.storage.connection` does, on a disk of ours."""
    is_new = not path.exists()
    connection = apsw.Connection(str(path), vfs=disk.name)
    for statement in (*(_CREATION if is_new else ()), *schema.EVERY_CONNECTION):
        connection.execute(statement)
    if flushes == "none":
        connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    return cast(Connection, connection)  # what the ledger uses of it is the same
