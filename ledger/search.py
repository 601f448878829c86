"""Find events without reading all of them: the newest, or by the beginning of an id.

A module of its own, since sqlite-utils takes longer to import than most readings need.
"""

import sqlite3

from sqlite_utils import Database

from ledger.errors import CannotRead
from ledger.reader import LedgerReader
from ledger.recorded import StoredEvent


def newest(
    ledger: LedgerReader,
    *,
    until: int | None = None,
    event_type: str | None = None,
    limit: int | None,
) -> tuple[StoredEvent, ...]:
    """Return the newest events, in order of position."""
    where = "position <= :until AND (:type IS NULL OR type = :type)"
    values = {"until": ledger.head.position if until is None else until, "type": event_type}
    rows = _rows(ledger, where, values, order_by="position DESC", limit=limit)
    return tuple(rows[::-1])


def with_id(ledger: LedgerReader, beginning: str) -> tuple[StoredEvent, ...]:
    """Return the events whose id starts with some of its 32 hexadecimal characters."""
    where = "lower(hex(event_id)) LIKE :beginning || '%' ESCAPE '\\'"
    escaped = beginning.lower().replace("%", r"\%").replace("_", r"\_")
    rows = _rows(ledger, where, {"beginning": escaped}, order_by="position", limit=None)
    return tuple(rows)


def _rows(
    ledger: LedgerReader,
    where: str,
    values: dict[str, int | str | None],
    *,
    order_by: str,
    limit: int | None,
) -> list[StoredEvent]:
    events = Database(ledger.connection).table("event")
    try:
        found = list(events.rows_where(where, values, order_by=order_by, limit=limit))
    except sqlite3.DatabaseError as error:
        ledger.require_unchanged()
        raise CannotRead(ledger.path, str(error)) from error
    ledger.require_unchanged()
    return [StoredEvent(**row) for row in found]
