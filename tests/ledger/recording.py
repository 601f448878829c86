"""A run's appends on a recording disk: all that it did, and what it was told is recorded."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import count, islice
from pathlib import Path
from sqlite3 import Connection
from typing import Final, Literal, NamedTuple, cast

import apsw
import numpy as np

from ledger import schema
from ledger.events.judging import VerdictReceived
from ledger.identity import JudgeId
from ledger.row import Row
from ledger.store import Ledger
from tests.builders import NOON, STREAM, key
from tests.ledger.recording_disk import Operation, RecordingDisk

Synchronous = Literal["FULL", "NORMAL", "OFF"]

N_OPENINGS: Final = 2  # a run is resumed: SQLite then deletes its WAL and makes another
N_BATCHES: Final = 3  # per opening
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
    rows: tuple[Row, ...]

    def acknowledged_at(self, n_operations: int) -> int:
        """Return how many events were acknowledged when the disk had done so much."""
        return max(each.n_events for each in self.acknowledged if each.n_operations <= n_operations)

    def began_with(self, rows: tuple[Row, ...]) -> bool:
        """Say whether these rows are whole batches of the run, from its first on."""
        whole_batches = {each.n_events for each in self.acknowledged}
        return len(rows) in whole_batches and self.rows[: len(rows)] == rows


def record(path: Path, synchronous: Synchronous, rng: np.random.Generator) -> Recording:
    """Create a ledger, append to it and resume, and note all of it."""
    disk = RecordingDisk(f"recording {path}")
    batches = _batches(rng)
    acknowledged = [Acknowledged(0, 0)]
    rows: tuple[Row, ...] = ()
    for _ in range(N_OPENINGS):
        with Ledger(_open(disk, path, synchronous), path, _noon) as ledger:
            for batch in islice(batches, N_BATCHES):
                ledger.append(STREAM, batch)
                n_events = acknowledged[-1].n_events + len(batch)
                acknowledged.append(Acknowledged(n_events, len(disk.log)))
            rows = tuple(ledger.rows())
    disk.unregister()
    return Recording(path.name, tuple(disk.log), tuple(acknowledged), rows)


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


def _open(disk: RecordingDisk, path: Path, synchronous: Synchronous) -> Connection:
    """Open as `ledger.connection` does, on a disk of ours, with the sync that is on trial."""
    is_new = not path.exists()
    connection = apsw.Connection(str(path), vfs=disk.name)
    for statement in (*(_CREATION if is_new else ()), *schema.EVERY_CONNECTION):
        connection.execute(statement)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    return cast(Connection, connection)  # what the ledger uses of it is the same
