"""The triggers that keep the file append-only, whoever opens it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from ledger.store import Ledger

REFUSED = {
    "update": "UPDATE event SET data = x'7b7d' WHERE position = 2",
    "update of nothing": "UPDATE event SET data = data",
    "delete": "DELETE FROM event WHERE position = 3",
    "delete all": "DELETE FROM event",
    "replace a position": """
        REPLACE INTO event SELECT 2, zeroblob(16), 'new', 1, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 2""",
    "replace an event id": """
        REPLACE INTO event SELECT 4, event_id, 'new', 1, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 2""",
    "insert behind a gap": """
        INSERT INTO event SELECT 5, zeroblob(16), stream, 4, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 3""",
    "insert before all": """
        INSERT INTO event SELECT 0, zeroblob(16), stream, 4, type, 1, 0, data, leaf, chain
        FROM event WHERE position = 3""",
}


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED)
def test_sql_cannot_rewrite_what_was_recorded(filed: Path, statement: str) -> None:
    """A stray statement in any SQLite tool must not change history: no setting is needed."""
    healthy = filed.read_bytes()

    with (
        closing(sqlite3.connect(filed)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"),
    ):
        connection.execute(statement)

    assert filed.read_bytes() == healthy


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED)
def test_the_ledgers_own_connection_is_guarded_too(filed: Path, statement: str) -> None:
    """The connection is handed to queries of one's own."""
    with Ledger.open(filed) as ledger:
        before = list(ledger.rows())

        with pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"):
            ledger.connection.execute(statement)

        assert list(ledger.rows()) == before


def test_sqlite_utils_cannot_upsert_an_event(filed: Path) -> None:
    """sqlite-utils offers `upsert` and `replace=True`, which delete without a DELETE trigger."""
    with Ledger.open(filed) as ledger:
        before = list(ledger.rows())
        events = Database(ledger.connection).table("event")

        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            events.upsert({**before[1]._asdict(), "data": b"{}"}, pk="position")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            events.insert({**before[1]._asdict(), "data": b"{}"}, replace=True)

        assert list(ledger.rows()) == before
