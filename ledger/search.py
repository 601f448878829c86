"""Find events without reading all of them: the newest, or by the beginning of an id."""

from typing import Final

from ledger.reader import LedgerReader
from ledger.recorded import StoredEvent

_ALL: Final = -1  # to SQLite's LIMIT
_NEWEST: Final = (
    "SELECT * FROM event WHERE position <= ?1 AND (?2 = '' OR type = ?2)"
    " ORDER BY position DESC LIMIT ?3"
)
_WITH_ID: Final = (
    "SELECT * FROM event WHERE lower(hex(event_id)) LIKE ? || '%' ESCAPE '\\' ORDER BY position"
)


def newest(
    ledger: LedgerReader,
    *,
    until: int | None = None,
    event_type: str | None = None,
    limit: int | None,
) -> tuple[StoredEvent, ...]:
    """Return the newest events, in order of position."""
    last = ledger.head.position if until is None else until
    n_most = _ALL if limit is None else limit
    rows = ledger.select(_NEWEST, last, event_type or "", n_most)
    return tuple(map(StoredEvent.of, rows[::-1]))


def with_id(ledger: LedgerReader, beginning: str) -> tuple[StoredEvent, ...]:
    """Return the events whose id starts with some of its 32 hexadecimal characters."""
    escaped = beginning.lower().replace("%", r"\%").replace("_", r"\_")
    return tuple(map(StoredEvent.of, ledger.select(_WITH_ID, escaped)))
