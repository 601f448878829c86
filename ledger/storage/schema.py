"""The schema of the SQLite file: its tables, triggers that keep them append-only, and views."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ledger.storage.views.further import FURTHER
from ledger.storage.views.judged import JUDGED
from ledger.storage.views.registered import REGISTERED
from ledger.storage.views.view import EVENTS

APPLICATION_ID: Final = 0x544F5552  # "TOUR"
FORMAT: Final = 2  # 1 had a table of what is in each stream

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

# Where the events of a stream are, or those of a type in it.
TYPES: Final = "CREATE INDEX type_in_stream ON event (stream, type)"

_GUARDED: Final = {"event": "event", "key": "event_key"}  # tables
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
    "stream_began": BEGINNINGS,
    "type_in_stream": TYPES,
    "event_is_never_replaced": """\
CREATE TRIGGER event_is_never_replaced BEFORE INSERT ON event
WHEN NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM event)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: only the next event is inserted'); END""",
    **dict(_guards()),
}
"""What tourney makes beside views, which anybody may read and no tourney does."""

# What the first format had in place of an index, with a view of it.
RETIRED: Final[Mapping[str, str]] = {
    "event_kind": "table",
    "kind_is_never_updated": "trigger",
    "kind_is_never_deleted": "trigger",
    "events_by_type": "view",
}
UPGRADE: Final = (
    "DROP VIEW IF EXISTS events_by_type",
    "DROP TABLE event_kind",
    TYPES,
    f"PRAGMA user_version = {FORMAT}",
)

# SQLite makes them itself, when it is asked to ANALYZE the file, as many a tool does.
_STATISTICS: Final = frozenset({f"sqlite_stat{n}" for n in (1, 2, 3, 4)})

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

_CONTENTS: Final = "SELECT type, name, sql FROM sqlite_schema"
_MADE_VIEWS: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'view'"

Select: TypeAlias = Callable[[str], Iterable[tuple[Any, ...]]]
"""Returns the rows of a query."""


def differences(select: Select) -> Iterator[str]:
    """Describe how a file's schema differs from what tourney makes.

    A view of ours may say anything: another version has made it, and none of ours reads it.

    Args:
        select: Of the file. SQLite keeps the text of each statement as it was given.
    """
    [(file_format,)] = select("PRAGMA user_version")
    is_outdated = file_format < FORMAT
    missing = dict(DEFINITIONS)
    if is_outdated:
        del missing["type_in_stream"]
    for kind, name, sql in select(_CONTENTS):
        if name in missing and missing[name] == sql:
            del missing[name]
        elif name not in missing and not _is_known(kind, name, is_outdated=is_outdated):
            yield f"{kind} {name!r} was not made by tourney"
    yield from (f"{name} is missing from the file's schema, or was changed" for name in missing)


def _is_known(kind: str, name: str, *, is_outdated: bool) -> bool:
    """Say whether a thing is a view of ours, of an earlier format, or SQLite's own."""
    if kind == "view":
        return name in _VIEW_NAMES or (is_outdated and RETIRED.get(name) == kind)
    return (kind == "table" and name in _STATISTICS) or (is_outdated and RETIRED.get(name) == kind)


_VIEW_NAMES: Final = frozenset(view.name for view in VIEWS)


def has_own_views(select: Select) -> bool:
    """Say whether a file has each view as this version makes it."""
    made = {name: sql.partition(" AS ")[2] for name, sql in select(_MADE_VIEWS)}
    return all(made.get(view.name) == view.select for view in VIEWS)
