"""Appending and reading."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.auditing.audit import audit
from ledger.chain import GENESIS
from ledger.errors import (
    CannotRead,
    CannotWrite,
    DiskFailed,
    KeyConflict,
    StaleVersion,
    UnreadableEvent,
)
from ledger.events.registry import EVENTS, Event
from ledger.identity import StreamId, digest_of_bytes
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, NOON, STREAM, key, placed, verdict, verdicts
from tests.support.faults.hostile import tamper
from tests.support.strategies.events import histories

OTHER = StreamId("other")
SET_TIME = "UPDATE event SET recorded_us = {} WHERE position = {}".format


def clock(*times: datetime) -> Callable[[], datetime]:
    """Return a clock that shows these times, one at each look."""
    return iter(times).__next__


def positions(ledger: Ledger) -> list[int]:
    """Return the positions of all events that can be read."""
    return [each.position for each in ledger.read()]


@given(history=histories())
def test_any_history_reads_back_as_it_was_told(history: list[Event]) -> None:
    """No event of any content is changed by storing it, or looks like tampering."""
    with Ledger.in_memory() as ledger:
        appended = placed(ledger.append(STREAM, history))

        everything = tuple(ledger.read())
        faults = audit(ledger)

    assert faults == ()
    assert everything == appended
    assert [each.event for each in everything] == history


def test_a_failing_batch_leaves_nothing_behind(ledger: Ledger) -> None:
    """Half an opening would be a tournament that nobody planned."""
    before = placed(ledger.append(STREAM, verdicts(2)))
    conflicting = verdict(key("1"), "B")

    with pytest.raises(KeyConflict):
        ledger.append(STREAM, [*verdicts(3, after=2), conflicting])

    assert tuple(ledger.read()) == before


def test_a_stale_writer_is_refused(ledger: Ledger) -> None:
    """Two processes that resume one run must not both act on the same state."""
    ledger.append(STREAM, verdicts(3))

    with pytest.raises(
        StaleVersion, match=r"'main' is at version 3, expected 2: .* run the same command again"
    ) as caught:
        ledger.append(STREAM, verdicts(1, after=3), expected_version=2)

    refusal = caught.value
    assert (refusal.stream, refusal.expected, refusal.actual) == (STREAM, 2, 3)
    assert ledger.head.position == 3


def test_a_writer_at_the_newest_version_is_not_stale(ledger: Ledger) -> None:
    """Only the writer's own stream counts: another tournament may have moved on."""
    ledger.append(STREAM, verdicts(2))
    ledger.append(OTHER, verdicts(5))

    (appended,) = placed(ledger.append(STREAM, verdicts(1, after=2), expected_version=2))

    assert (appended.position, appended.version) == (8, 3)


def test_a_stale_writer_with_nothing_new_is_answered(ledger: Ledger) -> None:
    """A retry that repeats a batch carries the version from before that batch."""
    first = ledger.append(STREAM, verdicts(2), expected_version=0)

    again = ledger.append(STREAM, verdicts(2), expected_version=0)

    assert placed(again) == placed(first)
    assert not any(receipt.is_new for receipt in again)


def test_a_stale_writer_with_other_content_is_told_that_it_is_stale(ledger: Ledger) -> None:
    """Two processes on one run make the same response in different times; neither is at fault."""
    ledger.append(STREAM, verdicts(1))
    other = verdict(key("0"), "B")

    with pytest.raises(StaleVersion):
        ledger.append(STREAM, [other], expected_version=0)


def test_the_same_fact_twice_in_a_batch_is_recorded_once(ledger: Ledger) -> None:
    """A bank that names a prompt twice must not end in an SQLite error."""
    (event,) = verdicts(1)

    first, second = ledger.append(STREAM, [event, event])

    assert first.is_new
    assert second == first._replace(is_new=False)
    assert positions(ledger) == [1]


def test_other_content_under_the_same_key_is_refused(ledger: Ledger) -> None:
    """A second verdict on one query means that a judge was paid twice: somebody must look."""
    ledger.append(STREAM, verdicts(2))
    query = key("1")

    with pytest.raises(KeyConflict, match=r"already recorded at position 2 .*`tourney log 2`") as (
        caught
    ):
        ledger.append(STREAM, [verdict(query, "TIE")])

    conflict = caught.value
    assert (conflict.key, conflict.position) == (f"VerdictReceived {query}", 2)
    recorded = digest_of_bytes(EVENTS.encode(verdict(query)))
    offered = digest_of_bytes(EVENTS.encode(verdict(query, "TIE")))
    assert (conflict.recorded, conflict.offered) == (recorded, offered)
    assert f"content {recorded[:12]}, and the new content is {offered[:12]};" in str(conflict)


def test_two_contents_of_one_key_in_a_batch_are_refused(ledger: Ledger) -> None:
    """Nothing is recorded yet that could be shown, so the message names no position."""
    query = key("1")

    with pytest.raises(
        KeyConflict, match=r"one append has the key .* twice, with contents"
    ) as caught:
        ledger.append(STREAM, [*verdicts(1), verdict(query), verdict(query, "TIE")])

    conflict = caught.value
    assert (conflict.key, conflict.position) == (f"VerdictReceived {query}", None)
    assert ledger.head.position == 0


def test_the_same_receipt_is_given_however_often_one_asks(path: Path) -> None:
    """A writer that lost its answer learns the place, the leaf and the link, from any process."""
    with Ledger.open(path) as ledger:
        first = ledger.append(STREAM, verdicts(3))
    with Ledger.open(path) as reopened:
        again = [reopened.append(STREAM, verdicts(3)) for _ in range(3)]
        rows = list(reopened.rows())

    assert all(receipt.is_new for receipt in first)
    assert again == [tuple(each._replace(is_new=False) for each in first)] * 3
    assert [each.leaf for each in first] == [row.leaf for row in rows]
    assert [each.recorded.link for each in first] == [row.chain for row in rows]


def test_the_same_fact_in_another_stream_is_another_event(ledger: Ledger) -> None:
    """Two tournaments may share a judge query without sharing its verdict."""
    (here,) = ledger.append(STREAM, verdicts(1))

    (there,) = ledger.append(OTHER, verdicts(1))

    assert (here.is_new, there.is_new) == (True, True)
    assert here.recorded.event == there.recorded.event
    one, other = ledger.rows()
    assert one.event_id != other.event_id


def test_an_empty_batch_records_nothing(ledger: Ledger) -> None:
    """A command that finds nothing to do may still append its empty result."""
    appended = ledger.append(STREAM, (), expected_version=7)

    assert appended == ()
    assert ledger.head == (0, GENESIS.hex())


def test_recorded_time_never_goes_back() -> None:
    """A clock set back would give one time two as-of positions."""
    hour = timedelta(hours=1)
    with Ledger.in_memory(now=clock(NOON, NOON - hour, NOON + hour)) as ledger:
        for event in verdicts(3):
            ledger.append(STREAM, [event])

        times = [each.recorded_at for each in ledger.read()]

    assert times == [NOON, NOON, NOON + hour]


def test_an_unknown_event_does_not_disturb_reading_others(filed: Path) -> None:
    """A run that resumes asks for the types that it knows what to do with."""
    tamper(filed, "UPDATE event SET type = 'PairSettled' WHERE position = 2")

    with Ledger.read_only(filed) as ledger:
        read = [each.position for each in ledger.read(types=["VerdictReceived"])]

    assert read == [1, 3]


def test_events_appended_while_reading_are_not_read(ledger: Ledger) -> None:
    """A view is of one moment: the head when reading began."""
    ledger.append(STREAM, verdicts(2))
    reading = ledger.read()
    first = next(reading)

    ledger.append(STREAM, verdicts(5, after=2))

    assert [first.position, *(each.position for each in reading)] == [1, 2]


def test_the_chain_can_be_asked_at_any_position(ledger: Ledger) -> None:
    """A head noted last year is compared with what lies at its position today."""
    appended = placed(ledger.append(STREAM, verdicts(3)))

    chain = [ledger.chain_at(position) for position in range(5)]

    assert chain == [GENESIS.hex(), *(each.chain for each in appended), None]
    assert ledger.chain_at(10**18 - 1) is ledger.chain_at(2**63) is None


def test_a_time_that_no_calendar_has_stops_reading(filed: Path) -> None:
    """It would end in an overflow wherever the time is shown."""
    tamper(filed, SET_TIME(2**62, 2))

    with Ledger.read_only(filed) as ledger, pytest.raises(UnreadableEvent, match="out of range"):
        list(ledger.read())


def test_an_unknown_event_stops_reading_with_its_position(filed: Path) -> None:
    """Skipping what this tourney does not know would give ratings that are quietly wrong."""
    tamper(filed, "UPDATE event SET type = 'PairSettled' WHERE position = 2")

    with Ledger.read_only(filed) as ledger:
        reading = ledger.read()
        first = next(reading)
        with pytest.raises(
            UnreadableEvent, match="position 2: unknown event type 'PairSettled'"
        ) as (caught):
            next(reading)

    assert first.position == 1
    assert caught.value.position == 2


def test_a_damaged_file_is_reported_not_a_traceback(filed: Path) -> None:
    """Disks fail: the user is told which file to replace."""
    healthy = filed.read_bytes()
    filed.write_bytes(healthy[:16_384] + bytes(16_384) + healthy[32_768:])

    with (
        Ledger.read_only(filed) as ledger,
        pytest.raises(CannotRead, match=r"is damaged: .* malformed; restore a backup"),
    ):
        list(ledger.rows())


def test_a_ledger_opened_to_read_refuses_to_append(filed: Path) -> None:
    """A report must not be able to change what it reports on."""
    with Ledger.read_only(filed) as ledger:
        with pytest.raises(CannotWrite, match="readonly"):
            ledger.append(STREAM, verdicts(1, after=N_FILED))

        assert positions(ledger) == [1, 2, 3]


@contextmanager
def no_room(ledger: Ledger) -> Iterator[None]:
    """Let the disk be full for a while."""
    [(n_pages,)] = ledger.select("PRAGMA page_count")
    ledger.connection.execute(f"PRAGMA max_page_count = {n_pages}")
    yield
    ledger.connection.execute("PRAGMA max_page_count = 1000000")


def test_once_the_disk_was_full_nothing_more_is_written_until_it_is_opened_again(
    filed: Path,
) -> None:
    """The remedy that the message names must work; and nothing else may come in between."""
    long = replace(verdict(key("long")), reply="x" * 1_000_000)

    with Ledger.open(filed) as ledger:
        with no_room(ledger), pytest.raises(CannotWrite, match="free disk space, then run"):
            ledger.append(STREAM, [*verdicts(1, after=N_FILED), long])
        with pytest.raises(CannotWrite, match="free disk space, then run"):
            ledger.append(STREAM, verdicts(1, after=N_FILED))
        with pytest.raises(CannotWrite, match="free disk space, then run"):
            ledger.erase()
        assert positions(ledger) == [1, 2, 3]
    with Ledger.open(filed) as ledger:
        receipts = ledger.append(STREAM, [*verdicts(1, after=N_FILED), long])

        assert all(each.is_new for each in receipts)
        assert placed(receipts) == tuple(ledger.read(after=N_FILED))
        assert audit(ledger) == ()


class FailingDisk(sqlite3.Connection):
    """A connection whose commits are not flushed."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # noqa: ANN401
        """Fail where a commit would be flushed, as SQLite does: it rolls back."""
        if sql != "COMMIT":
            return super().execute(sql, *parameters)
        super().execute("ROLLBACK")
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error


def test_once_a_flush_has_failed_nothing_more_is_written(filed: Path) -> None:
    """The system forgets what it could not write, and reports the next flush as good."""
    connection = sqlite3.connect(filed, isolation_level=None, factory=FailingDisk)
    with Ledger(connection, filed) as ledger:
        for _ in range(2):
            with pytest.raises(
                DiskFailed, match=r"disk failed while .*run\.ledger was written: .*repeats nothing"
            ) as caught:
                ledger.append(STREAM, verdicts(1, after=N_FILED))
            assert (caught.value.path, caught.value.why) == (filed, "disk I/O error")
        assert positions(ledger) == [1, 2, 3]


def test_what_is_known_already_is_on_the_disk_before_it_is_told(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who appended it may have been killed before the flush, and this append flushes nothing."""
    flushed: list[int] = []
    with Ledger.open(filed) as ledger:
        ledger.append(STREAM, verdicts(1, after=N_FILED))
        monkeypatch.setattr(os, "fsync", flushed.append)

        ledger.append(STREAM, verdicts(1, after=N_FILED))

    assert len(flushed) == 1


def test_a_disk_that_fails_to_flush_what_is_known_is_told(
    filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be lost with the power."""

    def fails(_handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Ledger.open(filed) as ledger:
        monkeypatch.setattr(os, "fsync", fails)

        for n_events in (1, N_FILED + 1):
            with pytest.raises(CannotWrite, match="Input/output error; this step recorded nothing"):
                ledger.append(STREAM, verdicts(n_events))


def test_nothing_is_appended_to_a_ledger_that_was_closed(path: Path) -> None:
    """A descriptor that was given back may be another file's by now."""
    opened = Ledger.open(path)
    opened.close()

    with pytest.raises(ValueError, match="was closed"):
        opened.append(STREAM, verdicts(1))
