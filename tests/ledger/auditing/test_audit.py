"""The audit finds whatever is not as it was recorded."""

import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from ledger.auditing.audit import ChainAuditor, Fault, audit, audit_file, read_some
from ledger.errors import CannotRead
from ledger.recorded import StoredEvent
from ledger.storage import schema
from ledger.storage.schema import VIEWS
from ledger.store import Ledger
from tests.support.auditing import audit_chain
from tests.support.builders.events import N_FILED, STREAM, opened, verdicts
from tests.support.faults.damage import hide
from tests.support.faults.hostile import loosen, tamper

CONTENT = "its content is not what was recorded"
LINK = "its link to the event before it is broken"

TAMPERED = {
    "payload": (
        """UPDATE event SET data = CAST(replace(CAST(data AS TEXT), ':"A"', ':"B"') AS BLOB)
        WHERE position = 2""",
        [(2, CONTENT)],
    ),
    "payload of a wrong shape": (
        "UPDATE event SET data = x'7b7d' WHERE position = 2",
        [(2, CONTENT), (2, "its data does not match VerdictReceived")],
    ),
    "payload that is no text": (
        "UPDATE event SET data = x'ff' WHERE position = 2",
        [(2, CONTENT), (2, "its data does not match VerdictReceived")],
    ),
    "type": (
        "UPDATE event SET type = 'PairReconciled' WHERE position = 2",
        [(2, CONTENT), (2, "its data does not match PairReconciled")],
    ),
    "unknown type": (
        "UPDATE event SET type = 'PairSettled' WHERE position = 2",
        [(2, CONTENT), (2, "unknown event type 'PairSettled'")],
    ),
    "type that is no text": (
        "UPDATE event SET type = CAST(x'ff' AS TEXT) WHERE position = 2",
        [(2, CONTENT), (2, "its stream or type is not UTF-8 text")],
    ),
    "schema version": (
        "UPDATE event SET schema_version = 99 WHERE position = 2",
        [(2, CONTENT), (2, "unknown version 99 of VerdictReceived (known: 1")],
    ),
    "time": ("UPDATE event SET recorded_us = recorded_us + 1 WHERE position = 2", [(2, CONTENT)]),
    "time that no calendar has": (
        "UPDATE event SET recorded_us = 9223372036854775807 WHERE position = 2",
        [(2, CONTENT), (2, "its time is out of range: 9223372036854775807 us")],
    ),
    "event id": ("UPDATE event SET event_id = zeroblob(16) WHERE position = 2", [(2, CONTENT)]),
    "stream": (
        "UPDATE event SET stream = 'other' WHERE position = 3",
        [(3, "it is version 3 of stream 'other', expected 1"), (3, CONTENT)],
    ),
    "stream that is no text": (
        "UPDATE event SET stream = CAST(x'ff' AS TEXT) WHERE position = 3",
        [
            (3, "it is version 3 of stream '\ufffd', expected 1"),
            (3, CONTENT),
            (3, "its stream or type is not UTF-8 text"),
        ],
    ),
    "version": (
        "UPDATE event SET version = 7 WHERE position = 3",
        [(3, "it is version 7 of stream 'main', expected 3")],
    ),
    "version that was given already": (
        """INSERT INTO event SELECT 4, zeroblob(16), stream, version, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 2""",
        [(4, "it is version 2 of stream 'main', expected 4"), (4, CONTENT), (4, LINK)],
    ),
    "leaf": ("UPDATE event SET leaf = zeroblob(32) WHERE position = 2", [(2, CONTENT), (2, LINK)]),
    "chain": ("UPDATE event SET chain = zeroblob(32) WHERE position = 2", [(2, LINK), (3, LINK)]),
    "last chain": ("UPDATE event SET chain = zeroblob(32) WHERE position = 3", [(3, LINK)]),
    "deleted row": (
        "DELETE FROM event WHERE position = 2",
        [
            (3, "position 2 is missing before it"),
            (3, "it is version 3 of stream 'main', expected 2"),
            (3, LINK),
        ],
    ),
    "deleted first row": (
        "DELETE FROM event WHERE position = 1",
        [
            (2, "position 1 is missing before it"),
            (2, "it is version 2 of stream 'main', expected 1"),
            (2, LINK),
        ],
    ),
    "moved row": (
        "UPDATE event SET position = 5 WHERE position = 3",
        [(5, "position 3 is missing before it")],
    ),
}


SET_FIELD = "UPDATE event SET {} = {} WHERE position = 2".format
MISTYPED = [
    (field, value) for field, value in product(StoredEvent._fields[1:], ("NULL", "x'ff'", "1.5"))
]  # a position is always a number: SQLite keeps it apart


def faults_of(path: Path) -> list[tuple[int, str]]:
    """Return what an audit of a file finds; in words."""
    with Ledger.read_only(path) as ledger:
        return [(fault.position, fault.why) for fault in audit(ledger)]


@pytest.mark.no_cover
@pytest.mark.parametrize(("statement", "expected"), TAMPERED.values(), ids=TAMPERED)
def test_each_kind_of_tampering_is_found_where_it_is(
    filed: Path, statement: str, expected: list[tuple[int, str]]
) -> None:
    """Whoever owns the file can drop the triggers; the chain still tells."""
    tamper(filed, statement)

    faults = faults_of(filed)

    assert [position for position, _ in faults] == [position for position, _ in expected]
    for (_, why), (_, beginning) in zip(faults, expected, strict=True):
        assert why.startswith(beginning)


@pytest.mark.parametrize("column", StoredEvent._fields)
def test_a_table_that_lacks_a_column_is_told_and_no_event_blamed(filed: Path, column: str) -> None:
    """Nothing can be checked, so a list of faults would say less than there is."""
    with closing(sqlite3.connect(filed)) as connection:
        for view in VIEWS:  # SQLite renames in them, too, where it can
            connection.execute(f"DROP VIEW {view.name}")
        connection.execute(f"ALTER TABLE event RENAME COLUMN {column} TO other")

    with pytest.raises(
        CannotRead, match=f"another program changed its tables: no such column: {column};"
    ):
        faults_of(filed)


def test_an_index_that_does_not_fit_the_events_is_told(filed: Path) -> None:
    """Which streams there are is answered by the index alone."""
    true = schema.DEFINITIONS["stream_began"]
    with closing(sqlite3.connect(filed)) as connection:
        connection.execute("DROP INDEX stream_began")
        connection.execute("CREATE INDEX stream_began ON event (type) WHERE version = 1")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'stream_began'", (true,))
        connection.commit()

    faults = faults_of(filed)

    assert {position for position, _ in faults} == {0}
    assert all(why.startswith("SQLite finds the file damaged: ") for _, why in faults)


def test_what_sqlite_finds_damaged_is_told(filed: Path) -> None:
    """It knows what no hash covers: which pages there are, and what each is for."""
    content = bytearray(filed.read_bytes())
    content[39] += 1  # the number of free pages
    filed.write_bytes(content)

    faults = faults_of(filed)

    assert [position for position, _ in faults] == [0]
    assert faults[0][1].startswith("SQLite finds the file damaged: ")


def test_a_file_that_cannot_be_read_at_all_is_a_fault_and_no_crash(ledger: Ledger) -> None:
    """As where its disk is gone."""
    ledger.connection.close()

    assert [fault.position for fault in audit_file(ledger)] == [0]


@pytest.mark.parametrize(("field", "value"), MISTYPED)
def test_a_field_of_any_type_is_a_fault_and_no_crash(
    ledger: Ledger, field: str, value: str
) -> None:
    """A damaged disk knows no types: where SQLite keeps them, a bit says which one it is."""
    ledger.append(STREAM, verdicts(3))
    loosen(ledger.connection)
    ledger.connection.execute(SET_FIELD(field, value))

    faults = [each for each in audit(ledger) if each.position]

    assert faults


def test_some_types_are_read_beside_what_cannot_be_read(filed: Path) -> None:
    """Publications are looked up first, whatever else is damaged, or hidden by an index."""
    with Ledger.open(filed) as ledger:
        ledger.append(STREAM, opened()[:1])
    tamper(filed, "UPDATE event SET stream = CAST(x'ff' AS TEXT) WHERE position = 1")
    hide(filed, "type_in_stream")

    with Ledger.read_only(filed) as ledger:
        [opening] = read_some(ledger, {"TournamentOpened"})
        assert opening.event == opened()[0]
        assert [*read_some(ledger, {"TournamentOpened"}, after=opening.position)] == []
        ledger.connection.close()
        assert [*read_some(ledger, {"TournamentOpened"})] == []


def test_events_that_arrive_during_an_audit_are_not_looked_at(filed: Path) -> None:
    """An audit is of the history up to a head; a run that goes on must not look like tampering."""
    with Ledger.open(filed) as ledger:
        head = ledger.head
        ledger.append(STREAM, verdicts(2, after=N_FILED))
        ledger.connection.execute("DROP TRIGGER event_is_never_updated")
        ledger.connection.execute("UPDATE event SET data = x'7b7d' WHERE position > 3")

        faults = audit_chain(ledger, head).faults
        read = [each for page in ChainAuditor(ledger, head).pages() for each in page]

        assert faults == ()
        assert read == list(ledger.read(until=N_FILED))


def test_every_event_that_can_be_read_is_read_beside_those_that_cannot(filed: Path) -> None:
    """Who repairs a ledger wants all that is left of it."""
    with Ledger.read_only(filed) as ledger:
        first, _, third = ledger.read()
    tamper(filed, "UPDATE event SET type = 'PairSettled' WHERE position = 2")

    with Ledger.read_only(filed) as ledger:
        each = [each for page in ChainAuditor(ledger, ledger.head).pages() for each in page]

    why = "unknown event type 'PairSettled'; a newer tourney may know it"
    assert each == [first, Fault(2, why), third]
