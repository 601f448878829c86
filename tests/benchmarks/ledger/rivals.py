"""The ledger and what it is compared with, all as durable: WAL, flushed at every commit."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate
from eventsourcing.sqlite import SQLiteApplicationRecorder

from ledger.events.judging import VerdictReceived
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.benchmarks.ledger.verdicts import Fields, Verdicts
from tests.benchmarks.rounds import Append

_SYNCHRONOUS_FULL: Final = 2


class Judged(Aggregate):
    """A tournament as `eventsourcing` has it."""

    @dataclass(frozen=True)
    class VerdictReceived(Aggregate.Event):
        """The ledger's event of this name, with the same fields."""

        query_key: str
        judge: str
        verdict: str
        reply: str
        parser: str
        stop_reason: str
        model: str


@contextmanager
def eventsourcing_appender(path: Path) -> Iterator[Append[Fields]]:
    """Give what saves a batch through an `eventsourcing` application, end to end.

    Its recorder sets journal_mode to WAL and leaves synchronous at SQLite's default; that is
    FULL, the ledger's setting, unless SQLite was compiled otherwise: which is checked.
    """
    env = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    with Application[UUID](env) as application:
        _require_full_flushes(application)
        tournament = Judged()

        def append(batch: Sequence[Fields]) -> None:
            for fields in batch:
                tournament.trigger_event(Judged.VerdictReceived, **fields)
            application.save(tournament)

        yield append


@contextmanager
def sqlite_appender(path: Path) -> Iterator[Append[bytes]]:
    """Give what inserts bytes that are ready into one table without an index."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE event (data BLOB NOT NULL)")

    def append(batch: Sequence[bytes]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO event VALUES (?)", [(data,) for data in batch])
        connection.execute("COMMIT")

    yield append
    connection.close()


def _require_full_flushes(application: Application[UUID]) -> None:
    recorder = application.recorder
    assert isinstance(recorder, SQLiteApplicationRecorder)
    with recorder.datastore.transaction(commit=False) as cursor:
        cursor.execute("PRAGMA synchronous")
        assert cursor.fetchone()[0] == _SYNCHRONOUS_FULL, "it is less durable than the ledger"


STREAM: Final = StreamId("main")
_AT_ONCE: Final = 10_000


@contextmanager
def ledger_appender(path: Path) -> Iterator[Append[Fields]]:
    """Give what appends a batch durably."""
    with Ledger.open(path) as ledger:
        yield appender(ledger)


def appender(ledger: Ledger) -> Append[Fields]:
    """Return what appends a batch to an open ledger."""

    def append(batch: Sequence[Fields]) -> None:
        ledger.append(STREAM, [VerdictReceived(**fields) for fields in batch])

    return append


def fill(path: Path, n_events: int, n_bytes: int) -> None:
    """Make a ledger of so many events."""
    verdicts = Verdicts(n_bytes)
    with ledger_appender(path) as append:
        for start in range(0, n_events, _AT_ONCE):
            append(verdicts.take(min(_AT_ONCE, n_events - start)))
