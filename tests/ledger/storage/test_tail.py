"""A long ledger opens as fast as a short one: old keys are looked up in a table, none is lost."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.auditing.audit import audit
from ledger.errors import StaleVersion
from ledger.identity import StreamId
from ledger.storage import schema
from ledger.storage.tail import _PLACES, _VERSION, Tail, keys_until
from ledger.store import Ledger
from tests.support.builders.events import STREAM, placed, verdicts

N_AT_ONCE: Final = 4
N_EVENTS: Final = 3 * N_AT_ONCE + 2
OTHER: Final = StreamId("other")


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the table grow often."""
    monkeypatch.setattr(schema, "KEYS_AT_ONCE", N_AT_ONCE)


@pytest.fixture
def long(path: Path) -> Path:
    """Give a ledger most of whose keys are in the table, of one event an append."""
    with Ledger.open(path) as ledger:
        ledger.append(OTHER, verdicts(2))
        for event in verdicts(N_EVENTS - 2):
            ledger.append(STREAM, [event])
    return path


def keys_of(path: Path) -> list[tuple[int]]:
    """Return the positions in the table of keys."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT position FROM event_key ORDER BY position").fetchall()


def test_opening_reads_the_newest_keys_alone(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five million keys in memory took 600 MB and six seconds before the first append."""
    read: list[str] = []
    with closing(sqlite3.connect(long)) as connection:
        connection.create_function("seen", 1, read.append)
        monkeypatch.setattr(
            "ledger.storage.tail._PLACES",
            _PLACES.replace("WHERE", "WHERE seen(event_id) IS NULL AND"),
        )
        tail = Tail()
        tail.catch_up(connection)

    assert tail.position == N_EVENTS
    assert len(read) == N_EVENTS % N_AT_ONCE


def test_keys_go_into_their_table_many_at_once(long: Path) -> None:
    """One at a time would change a page of the table with each append."""
    assert keys_of(long) == [(position,) for position in range(1, 3 * N_AT_ONCE + 1)]


def test_one_append_may_add_several_times_as_many(path: Path) -> None:
    """An import appends a hundred thousand events in one transaction."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, verdicts(N_EVENTS))

    assert len(keys_of(path)) == keys_until(N_EVENTS) == 3 * N_AT_ONCE


def test_every_fact_is_found_again_in_the_same_process_and_another(long: Path) -> None:
    """A fact that is not found is recorded twice, and perhaps paid for twice."""
    facts = verdicts(N_EVENTS - 2)
    with Ledger.open(long) as first, Ledger.open(long) as second:
        before = list(first.read(stream=STREAM))
        found = first.append(STREAM, facts)
        second.append(STREAM, verdicts(2 * N_AT_ONCE, after=len(facts)))
        again = first.append(STREAM, facts)

    assert placed(found) == placed(again) == tuple(before)
    assert not any(each.is_new for each in (*found, *again))


def test_a_stream_goes_on_where_it_ended(long: Path) -> None:
    """Its last event may lie far before the events that are read at opening."""
    with Ledger.open(long) as ledger:
        with pytest.raises(StaleVersion):
            ledger.append(OTHER, verdicts(1, after=2), expected_version=1)
        (late,) = ledger.append(OTHER, verdicts(1, after=2), expected_version=2)

    assert late.recorded.version == 3


def test_a_stream_that_was_idle_for_long_is_counted(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is not among those of the newest events."""
    monkeypatch.setattr("ledger.storage.tail._VERSION", _VERSION.replace("LIMIT 1000", "LIMIT 1"))
    with Ledger.open(long) as ledger:
        (late,) = ledger.append(OTHER, verdicts(1, after=2))

    assert late.recorded.version == 3


@settings(max_examples=40)
@given(batches=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 40), max_size=12))))
def test_two_writers_record_each_fact_once(batches: list[tuple[bool, list[int]]]) -> None:
    """Whatever each of them has read, and however much the table grows by."""
    facts = verdicts(41)
    known: set[int] = set()
    connections = [Tail(), Tail()]
    with Ledger.in_memory() as ledger:
        for is_first, numbers in batches:
            ledger._tail = connections[is_first]
            receipts = ledger.append(STREAM, [facts[number] for number in numbers])
            fresh = {number for number, each in zip(numbers, receipts, strict=True) if each.is_new}
            assert fresh == set(numbers) - known
            known |= fresh
        faults = audit(ledger)

    assert faults == ()
