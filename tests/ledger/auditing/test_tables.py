"""The table that leads to events is audited against the events themselves."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.auditing import tables
from ledger.auditing.audit import audit
from ledger.auditing.tables import _VERSION_BEFORE, StreamVersions
from ledger.events.registry import Event
from ledger.identity import StreamId
from ledger.storage import schema
from ledger.store import Ledger
from tests.support.builders.events import STREAM, verdicts
from tests.support.faults.hostile import tamper
from tests.support.strategies.events import histories

OTHER: Final = StreamId("other")
N_AT_ONCE: Final = 4
N_EVENTS: Final = 14
KEY_LOST: Final = "the table of keys does not lead to it"


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the table grow often."""
    monkeypatch.setattr(schema, "KEYS_AT_ONCE", N_AT_ONCE)


@pytest.fixture
def long(path: Path) -> Path:
    """Give a ledger most of whose events are in the table, of one event an append."""
    with Ledger.open(path) as ledger:
        for event in verdicts(N_EVENTS):
            ledger.append(STREAM, [event])
    return path


def faults_of(path: Path) -> list[tuple[int, str]]:
    """Return what an audit of a file finds; in words."""
    with Ledger.read_only(path) as ledger:
        return [(fault.position, fault.why) for fault in audit(ledger)]


ASTRAY: Final = {
    "key taken away": (
        "DELETE FROM event_key WHERE position = 3",
        [(0, "the table of keys has 11 rows, expected 12"), (3, KEY_LOST)],
    ),
    "keys swapped": (
        "UPDATE event_key SET position = 13 - position WHERE position IN (6, 7)",
        [(6, KEY_LOST), (7, KEY_LOST)],
    ),
    "two keys of one event": (
        "UPDATE event_key SET position = 6 WHERE position = 7",
        [(7, KEY_LOST)],
    ),
    "key added": (
        "INSERT INTO event_key VALUES (zeroblob(10), 14)",
        [(0, "the table of keys has 13 rows, expected 12")],
    ),
}


@pytest.mark.parametrize("what", ASTRAY)
def test_a_table_that_leads_astray_is_found(long: Path, what: str) -> None:
    """A fact that is not found is recorded twice, or left out of the ratings; no hash tells."""
    statement, faults = ASTRAY[what]
    tamper(long, statement)

    assert faults_of(long) == faults


@given(turns=st.lists(st.booleans(), max_size=20), data=st.data())
def test_the_version_of_a_stream_is_known_from_any_position_on(
    turns: list[bool], data: st.DataObject
) -> None:
    """Whether its last event is among the newest, or must be looked for."""
    until = data.draw(st.integers(0, len(turns)))
    looked_up = _VERSION_BEFORE.replace("LIMIT 1000", "LIMIT 1")
    with Ledger.in_memory() as ledger, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_VERSION_BEFORE", looked_up)
        for is_other, event in zip(turns, verdicts(len(turns)), strict=True):
            ledger.append(OTHER if is_other else STREAM, [event])
        versions = StreamVersions(ledger.select, until)

        assert versions[OTHER.encode()] == sum(turns[:until])
        assert versions[STREAM.encode()] == until - sum(turns[:until])


@given(events=histories())
def test_no_table_of_a_ledger_as_it_was_written_leads_astray(events: list[Event]) -> None:
    """Whatever happened, and however much of it is in the table."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, events)

        assert audit(ledger) == ()


def test_a_table_that_cannot_be_read_is_a_fault_and_no_crash(long: Path) -> None:
    """The chain is audited all the same."""
    with closing(sqlite3.connect(long)) as connection:
        connection.execute("DROP TABLE event_key")

    *altered, (position, why) = faults_of(long)

    assert position == 0
    assert why == (
        "something behind it cannot be read: another program changed its tables:"
        " no such table: event_key"
    )
    assert {each for _, each in altered} == {
        f"{name} is missing from the file's schema, or was changed"
        for name in ("event_key", "key_is_never_updated", "key_is_never_deleted")
    }


def test_a_table_that_holds_something_else_is_a_fault_and_no_crash(long: Path) -> None:
    """Another program made the table anew, and its columns take anything."""
    with closing(sqlite3.connect(long)) as connection:
        connection.executescript("""\
            PRAGMA legacy_alter_table = ON;
            CREATE TABLE any_key AS SELECT * FROM event_key;
            DROP TABLE event_key;
            ALTER TABLE any_key RENAME TO event_key;
            UPDATE event_key SET key = 'ten signs.' WHERE position = 3;
            UPDATE event_key SET position = 5.5 WHERE position = 5;""")

    found = [each for each in faults_of(long) if each[0]]

    assert found == [(3, KEY_LOST), (5, KEY_LOST)]
