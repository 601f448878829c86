"""Whoever may write to the file can add tables and triggers to it; tourney wants none but its own.

A trigger alone can swallow appends, while every hash in the file is right.
"""

import os
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from threading import Event

import pytest

from ledger.auditing.audit import Fault, audit, audit_file
from ledger.errors import AlteredSchema
from ledger.storage import schema
from ledger.storage.connection import connect_for_writing, prepare
from ledger.store import Ledger
from tests.support.builders.events import N_FILED, STREAM, placed, verdicts
from tests.support.faults.hostile import GUARDS
from tests.support.patience import PATIENCE_S

SWALLOW = "CREATE TRIGGER swallow BEFORE INSERT ON event BEGIN SELECT RAISE(IGNORE); END"
UNDO = (
    "CREATE TRIGGER undo AFTER INSERT ON event WHEN NEW.version = 5"
    " BEGIN DELETE FROM event WHERE version = 5; END; DROP TRIGGER event_is_never_deleted"
)
FORGE = "PRAGMA writable_schema = ON; {}; PRAGMA writable_schema = RESET".format

ADDED = {
    "table": ("CREATE TABLE t (x)", "table 't'"),
    "table with an index of its own": ("CREATE TABLE t (x UNIQUE)", "index 'sqlite_autoindex_t_1'"),
    "counting table": (
        "CREATE TABLE t (x INTEGER PRIMARY KEY AUTOINCREMENT)",
        "table 'sqlite_sequence'",
    ),
    "statistics of theirs": ("CREATE TABLE stat1 (x)", "table 'stat1'"),
    "index": ("CREATE INDEX i ON event (type)", "index 'i'"),
    "view": ("CREATE VIEW v AS SELECT * FROM event", "view 'v'"),
    "view of an earlier format": (
        "CREATE VIEW events_by_type AS SELECT * FROM event",
        "view 'events_by_type'",
    ),
    "table of an earlier format": ("CREATE TABLE event_key (x)", "table 'event_key'"),
    "table in the place of a view": ("DROP VIEW spend; CREATE TABLE spend (x)", "table 'spend'"),
    "trigger that swallows": (SWALLOW, "trigger 'swallow'"),
    "trigger that undoes": (UNDO, "trigger 'undo'"),
    "name that writes to a terminal": ('CREATE TABLE "\x1b[2J\n" (x)', r"table '\x1b[2J\n'"),
}
CHANGED = {
    **{f"no {name}": (f"DROP TRIGGER {name}", name) for name in GUARDS},
    "no index of keys": ("DROP INDEX event_of_key", "event_of_key"),
    "another index of keys": (
        "DROP INDEX event_of_key; CREATE INDEX event_of_key ON event (event_id)",
        "event_of_key",
    ),
    "no index of beginnings": ("DROP INDEX stream_began", "stream_began"),
    "guard that looks away": (
        "DROP TRIGGER event_is_never_updated;"
        + schema.DEFINITIONS["event_is_never_updated"].replace("BEGIN", "WHEN 0 BEGIN"),
        "event_is_never_updated",
    ),
    "another column": ("ALTER TABLE event ADD COLUMN note TEXT", "event"),
    "renamed column": ("ALTER TABLE event RENAME COLUMN chain TO link", "event"),
    "another table of its name": (
        """CREATE TABLE loose AS SELECT * FROM event; DROP TABLE event;
        PRAGMA legacy_alter_table = ON; ALTER TABLE loose RENAME TO event""",
        "event",
    ),
    "view of its name": (
        """DROP TRIGGER event_is_never_deleted; ALTER TABLE event RENAME TO hidden;
        CREATE VIEW event AS SELECT * FROM hidden""",
        "event",
    ),
    "checks that are forged": (
        FORGE("UPDATE sqlite_schema SET sql = replace(sql, '= 16', '= 17') WHERE name = 'event'"),
        "event",
    ),
}
ALTERED = {
    **{kind: (do, f"{what} was not made by tourney") for kind, (do, what) in ADDED.items()},
    **{
        kind: (do, f"{name} is missing from the file's schema, or was changed")
        for kind, (do, name) in CHANGED.items()
    },
}


def alter(path: Path, statements: str) -> None:
    """Change a ledger's file with any SQLite tool."""
    with closing(sqlite3.connect(path)) as stranger:
        stranger.executescript(statements)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ALTERED)
def test_verify_finds_what_was_altered_and_nothing_is_written_to_it(filed: Path, kind: str) -> None:
    """It belongs to no position. A run stops before the first query is paid for."""
    statements, why = ALTERED[kind]
    alter(filed, statements)
    before = filed.read_bytes()

    with Ledger.read_only(filed) as ledger:
        faults = tuple(audit_file(ledger))
    assert Fault(0, why) in faults
    with pytest.raises(AlteredSchema, match="remove foreign objects") as caught:
        Ledger.open(filed)

    assert caught.value.path == filed
    assert f"{filed} was altered: " in str(caught.value)
    assert why in str(caught.value)
    assert filed.read_bytes() == before


VIEWS_OTHERWISE = {
    "another word in a comment": "DROP VIEW spend; CREATE VIEW spend AS -- {}\nSELECT 1",
    "another meaning": "DROP VIEW verdicts; CREATE VIEW verdicts AS SELECT * FROM events",
    "missing": "DROP VIEW outcomes",
    "one that the others read": "DROP VIEW events; CREATE VIEW events AS SELECT 1 AS data",
    "spelt by another program": 'DROP VIEW runs; CREATE VIEW "runs" AS SELECT 1',
}


def views_of(path: Path) -> dict[str, str]:
    """Return the text of each view in a file."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'view'")
        return dict(found.fetchall())


@pytest.mark.parametrize("what", VIEWS_OTHERWISE)
def test_a_view_that_another_version_made_is_made_again(filed: Path, what: str) -> None:
    """A word changed in a view must not make the ledgers of yesterday unwritable."""
    before = views_of(filed)
    alter(filed, VIEWS_OTHERWISE[what])

    with Ledger.read_only(filed) as ledger:
        assert audit(ledger) == ()
        assert len([*ledger.read()]) == N_FILED
    assert views_of(filed) != before
    with Ledger.open(filed) as ledger:
        ledger.append(STREAM, verdicts(1, after=N_FILED))
        assert audit(ledger) == ()

    assert views_of(filed) == before


def test_views_that_are_as_this_version_makes_them_are_left_alone(filed: Path) -> None:
    """What makes views takes longer to import than most commands take."""
    with closing(sqlite3.connect(filed)) as connection:
        [(before,)] = connection.execute("PRAGMA schema_version")
        with Ledger.open(filed):
            [(after,)] = connection.execute("PRAGMA schema_version")

    assert after == before


def test_statistics_that_sqlite_keeps_are_no_foreign_tables(filed: Path) -> None:
    """Datasette's and sqlite-utils' `analyze`, and `PRAGMA optimize` of many a tool, make them."""
    alter(filed, "ANALYZE")

    with Ledger.open(filed) as ledger:
        ledger.append(STREAM, verdicts(1, after=N_FILED))
        assert audit(ledger) == ()


SECOND_FORMAT = """\
DROP TRIGGER event_is_never_repeated;
DROP INDEX event_of_key;
CREATE TABLE event_key (
  key BLOB PRIMARY KEY CHECK (length(key) = 10), position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TRIGGER key_is_never_updated BEFORE UPDATE ON event_key
BEGIN SELECT RAISE(ABORT, 'refused'); END;
CREATE TRIGGER key_is_never_deleted BEFORE DELETE ON event_key
BEGIN SELECT RAISE(ABORT, 'refused'); END;
PRAGMA user_version = 2;
"""
BEFORE_THE_SECOND = """\
DROP INDEX type_in_stream;
CREATE TABLE event_kind (
  stream TEXT NOT NULL, type TEXT NOT NULL, counted ANY NOT NULL, position INTEGER NOT NULL,
  PRIMARY KEY (stream, type, counted, position)) STRICT, WITHOUT ROWID;
INSERT INTO event_kind SELECT stream, type, '', position FROM event;
CREATE TRIGGER kind_is_never_updated BEFORE UPDATE ON event_kind
BEGIN SELECT RAISE(ABORT, 'refused'); END;
CREATE TRIGGER kind_is_never_deleted BEFORE DELETE ON event_kind
BEGIN SELECT RAISE(ABORT, 'refused'); END;
CREATE VIEW events_by_type AS SELECT position, stream, type FROM event_kind;
DROP VIEW outcomes;
CREATE VIEW outcomes AS SELECT 1 FROM events_by_type;
PRAGMA user_version = 1;
"""
FIRST_FORMAT = SECOND_FORMAT + BEFORE_THE_SECOND
of_each_earlier_format = pytest.mark.parametrize("made", [FIRST_FORMAT, SECOND_FORMAT])


def require_up_to_date(path: Path, n_events: int = N_FILED) -> None:
    """Require that a file is of today's format, and that nothing was lost."""
    with Ledger.read_only(path) as ledger:
        assert ledger.select("PRAGMA user_version") == [(schema.FORMAT,)]
        assert [*schema.differences(ledger.select)] == []
        assert audit(ledger) == ()
        assert ledger.head.position == n_events
    assert views_of(path).keys() == {view.name for view in schema.VIEWS}


@of_each_earlier_format
def test_a_file_of_an_earlier_format_is_read_as_it_is_and_brought_up_to_date_when_written(
    filed: Path, made: str
) -> None:
    """It had tables of what is in each stream and of keys, in the place of indexes."""
    alter(filed, made)
    before = filed.read_bytes()

    with Ledger.read_only(filed) as ledger:
        assert audit(ledger) == ()
        assert ledger.positions([STREAM], {"VerdictReceived"}, 0, N_FILED) == [1, 2, 3]
    assert filed.read_bytes() == before
    with Ledger.open(filed) as ledger:
        known, new = ledger.append(STREAM, verdicts(2, after=N_FILED - 1))

    assert (known.is_new, new.is_new) == (False, True)
    require_up_to_date(filed, N_FILED + 1)


@pytest.mark.no_cover
@of_each_earlier_format
def test_a_file_is_brought_up_to_date_whole_or_not_at_all(filed: Path, made: str) -> None:
    """Whoever is killed meanwhile leaves it as it was, and the next one begins anew."""
    alter(filed, made)
    with closing(sqlite3.connect(filed)) as connection:
        n_statements = len([*schema.upgrade(connection.execute)])
    for n_done in range(n_statements + 1):
        killed = get_context("fork").Process(target=die_after, args=(n_done, filed))
        killed.start()
        killed.join()

        assert killed.exitcode == -signal.SIGKILL
        with Ledger.read_only(filed) as ledger:
            assert ledger.select("PRAGMA user_version") != [(schema.FORMAT,)]
            assert audit(ledger) == ()
    Ledger.open(filed).close()

    require_up_to_date(filed)


def die_after(n_statements: int, path: Path) -> None:
    """Be killed in a process of its own, once so much was done to bring a file up to date."""
    upgrade = schema.upgrade

    def dying(select: schema.Select) -> Iterator[str]:
        yield from islice(upgrade(select), n_statements)
        os.kill(os.getpid(), signal.SIGKILL)

    schema.upgrade = dying  # in this process
    Ledger.open(path)


@of_each_earlier_format
def test_two_processes_that_open_a_file_at_once_bring_it_up_to_date_once(
    filed: Path, made: str
) -> None:
    """Who waited finds it done; whoever holds the lock beside the ledger may be an earlier one."""
    alter(filed, made)
    waits = Event()
    with (
        closing(connect_for_writing(filed)) as one,
        closing(connect_for_writing(filed)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.set_trace_callback(lambda said: waits.set() if said == "BEGIN IMMEDIATE" else None)
        one.execute("BEGIN IMMEDIATE")
        preparing = pool.submit(prepare, other, filed)
        assert waits.wait(PATIENCE_S)
        for statement in schema.upgrade(one.execute):
            one.execute(statement)
        one.execute("COMMIT")
        assert preparing.result() is False

    require_up_to_date(filed)


@of_each_earlier_format
def test_what_was_added_to_a_file_of_an_earlier_format_is_refused(filed: Path, made: str) -> None:
    """It is not brought up to date before somebody has removed it."""
    alter(filed, f"{made}; {SWALLOW}")
    before = filed.read_bytes()

    with pytest.raises(AlteredSchema, match="trigger 'swallow' was not made by tourney"):
        Ledger.open(filed)

    assert filed.read_bytes() == before


def test_once_it_is_removed_the_ledger_goes_on(filed: Path) -> None:
    """The remedy that the message names; the events were never at fault."""
    alter(filed, SWALLOW)
    alter(filed, "DROP TRIGGER swallow")

    with Ledger.open(filed) as ledger:
        (receipt,) = ledger.append(STREAM, verdicts(1, after=N_FILED))
        assert audit(ledger) == ()

    assert receipt.recorded.position == N_FILED + 1


@pytest.mark.parametrize(
    "statements",
    [
        SWALLOW,
        UNDO,
        SWALLOW.replace("BEGIN SELECT", "WHEN NEW.version = 5 BEGIN SELECT"),
        SWALLOW.replace("IGNORE", "ABORT, 'mine'"),
        """CREATE TRIGGER change AFTER INSERT ON event WHEN NEW.version = 5
        BEGIN UPDATE event SET data = '' WHERE version = 1; END;
        DROP TRIGGER event_is_never_updated""",
    ],
    ids=["swallows", "undoes", "swallows the last", "refuses", "changes another"],
)
def test_an_append_that_did_not_do_as_told_is_not_acknowledged(
    filed: Path, statements: str
) -> None:
    """A trigger can be added while a run goes on."""
    with Ledger.open(filed) as ledger:
        before = tuple(ledger.read())
        alter(filed, statements)

        with pytest.raises(AlteredSchema, match=r"run\.ledger was altered: .*; trigger '"):
            ledger.append(STREAM, verdicts(2, after=N_FILED))

        assert tuple(ledger.read()) == before
        alter(filed, f"DROP TRIGGER {statements.split()[2]}")
        receipts = ledger.append(STREAM, verdicts(2, after=N_FILED))
        assert tuple(ledger.read(after=N_FILED)) == placed(receipts)
