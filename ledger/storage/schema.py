"""The schema of the SQLite file: its tables, triggers that keep them append-only, and views."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ledger.storage.views.further import FURTHER
from ledger.storage.views.judged import JUDGED
from ledger.storage.views.registered import REGISTERED
from ledger.storage.views.view import EVENTS

APPLICATION_ID: Final = 0x544F5552  # "TOUR"
FORMAT: Final = 1

VIEWS: Final = (*REGISTERED, *JUDGED, *FURTHER, *EVENTS)

TABLE: Final = """\
CREATE TABLE event (
  position INTEGER PRIMARY KEY CHECK (position > 0),
  event_id BLOB NOT NULL CHECK (length(event_id) = 16),
  stream TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version > 0),
  type TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  recorded_us INTEGER NOT NULL,
  data BLOB NOT NULL,
  leaf BLOB NOT NULL CHECK (length(leaf) = 32),
  chain BLOB NOT NULL CHECK (length(chain) = 32)) STRICT"""

# The few beginnings of streams; versions are given under the write lock and need no index.
BEGINNINGS: Final = "CREATE INDEX stream_began ON event (stream) WHERE version = 1"

# Where an event with a key is, of all but the last few; see `ledger.storage.tail`.
KEYS: Final = """\
CREATE TABLE event_key (
  key BLOB PRIMARY KEY CHECK (length(key) = 10),
  position INTEGER NOT NULL) STRICT, WITHOUT ROWID"""
KEYS_AT_ONCE: Final = 65_536

# Where a stream's events of each type are, of all but the last few; see `ledger.storage.tail`.
KINDS: Final = """\
CREATE TABLE event_kind (
  stream TEXT NOT NULL,
  type TEXT NOT NULL,
  counted ANY NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (stream, type, counted, position)) STRICT, WITHOUT ROWID"""

# What `ledger.counts` tells apart within a type: how a pair ended, and a response's length. Events
# are JSON without white space, where a quote within a text is escaped: so a field's quoted name is
# found where the field is, and nowhere else. Bytes, since what was tampered with need not be text.
COUNTED: Final = """\
CASE type
  WHEN 'PairReconciled'
    THEN substr(data, instr(data, CAST('"outcome":"' AS BLOB)) + 11, 3)
  WHEN 'ResponseGenerated'
    THEN CAST(substr(data, instr(data, CAST('"n_generated_tokens":' AS BLOB)) + 21, 19) AS INTEGER)
  ELSE ''
END"""

_GUARDED: Final = {"event": "event", "key": "event_key", "kind": "event_kind"}  # tables
_GUARD: Final = """\
CREATE TRIGGER {name} BEFORE {act} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: {act} refused'); END"""


def _guards() -> Iterator[tuple[str, str]]:
    """Yield the triggers that refuse to change or delete a row, by name."""
    for thing, table in _GUARDED.items():
        for act in ("update", "delete"):
            name = f"{thing}_is_never_{act}d"
            yield name, _GUARD.format(name=name, act=act.upper(), table=table)


# INSERT OR REPLACE deletes without firing a DELETE trigger unless recursive_triggers is on,
# and sqlite-utils offers `replace=True`: so the insert itself is guarded too.
DEFINITIONS: Final[Mapping[str, str]] = {
    "event": TABLE,
    "event_key": KEYS,
    "event_kind": KINDS,
    "stream_began": BEGINNINGS,
    "event_is_never_replaced": """\
CREATE TRIGGER event_is_never_replaced BEFORE INSERT ON event
WHEN NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM event)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: only the next event is inserted'); END""",
    **dict(_guards()),
    **{view.name: view.statement for view in VIEWS},
}

# Before the first table: a 2 KB event wastes half of a page of 4 KiB.
PAGE_BYTES: Final = 16_384
PAGE_SIZE: Final = f"PRAGMA page_size = {PAGE_BYTES}"
WAL: Final = "PRAGMA journal_mode = WAL"
CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"  # what the log holds goes into the file

CREATION: Final = (
    *DEFINITIONS.values(),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)

EVERY_CONNECTION: Final = (
    "PRAGMA synchronous = FULL",  # a commit is flushed before anybody sees it
    "PRAGMA wal_autocheckpoint = 0",  # the ledger moves its log: see `ledger.storage.wal`
    "PRAGMA recursive_triggers = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)

CONTENTS: Final = "SELECT type, name, sql FROM sqlite_schema"


def differences(contents: Iterable[tuple[str, str, str | None]]) -> Iterator[str]:
    """Describe how a file's schema differs from what tourney creates.

    Args:
        contents: The rows of `CONTENTS`. SQLite keeps the text of each statement as it was given.
    """
    missing = dict(DEFINITIONS)
    for kind, name, sql in contents:
        if name not in missing:
            yield f"{kind} {name!r} was not made by tourney"
        elif missing[name] == sql:
            del missing[name]
    yield from (f"{name} is missing from the file's schema, or was changed" for name in missing)
