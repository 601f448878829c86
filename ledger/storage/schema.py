"""The schema of the SQLite file: its tables, triggers that keep them append-only, and views."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ledger.storage.views.further import FURTHER
from ledger.storage.views.tournaments import JUDGED, REGISTERED
from ledger.storage.views.view import EVENTS

APPLICATION_ID: Final = 0x544F5552  # "TOUR"
FORMAT: Final = 3  # 2 had a table of keys in the place of an index, and 1 one of types, too

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

# An event's key is the end of its id: see `ledger.identity.key_of`.
KEY: Final = "substr(event_id, 7)"

# Where the events of a stream are, or those of a type in it.
TYPES: Final = "CREATE INDEX type_in_stream ON event (stream, type)"

_GUARD: Final = """\
CREATE TRIGGER event_is_never_{} BEFORE {} ON event
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: {} refused'); END"""

# INSERT OR REPLACE deletes without firing a DELETE trigger unless recursive_triggers is on,
# and sqlite-utils offers `replace=True`: so the insert itself is guarded too.
DEFINITIONS: Final[Mapping[str, str]] = {
    "event": TABLE,
    "event_of_key": f"CREATE INDEX event_of_key ON event ({KEY})",
    "stream_began": "CREATE INDEX stream_began ON event (stream) WHERE version = 1",  # the few
    "type_in_stream": TYPES,
    "event_is_never_replaced": """\
CREATE TRIGGER event_is_never_replaced BEFORE INSERT ON event
WHEN NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM event)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: only the next event is inserted'); END""",
    "event_is_never_repeated": """\
CREATE TRIGGER event_is_never_repeated BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE substr(event_id, 7) = substr(NEW.event_id, 7))
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: a fact is recorded once'); END""",
    "event_is_never_updated": _GUARD.format("updated", "UPDATE", "UPDATE"),
    "event_is_never_deleted": _GUARD.format("deleted", "DELETE", "DELETE"),
}
"""What tourney makes beside views, which anybody may read and no tourney does."""

_SINCE: Final[Mapping[str, int]] = {
    "event_of_key": 3,
    "event_is_never_repeated": 3,
    "type_in_stream": 2,
}
"""The formats that brought them; all else was there from the first on."""

_RETIRED: Final[Mapping[str, str]] = {
    "events_by_type": "view",
    "event_kind": "table",
    "kind_is_never_updated": "trigger",
    "kind_is_never_deleted": "trigger",
    "event_key": "table",
    "key_is_never_updated": "trigger",
    "key_is_never_deleted": "trigger",
}
"""What earlier formats had; the triggers go with their tables."""

# SQLite makes them itself, when it is asked to ANALYZE the file, as many a tool does.
_STATISTICS: Final = frozenset({f"sqlite_stat{n}" for n in (1, 2, 3, 4)})

# Before the first table: a 2 KB event wastes half of a page of 4 KiB.
PAGE_BYTES: Final = 16_384
PAGE_SIZE: Final = f"PRAGMA page_size = {PAGE_BYTES}"
WAL: Final = "PRAGMA journal_mode = WAL"
CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"  # what the log holds goes into the file
_SAY_FORMAT: Final = f"PRAGMA user_version = {FORMAT}"

CREATION: Final = (
    *DEFINITIONS.values(),
    f"PRAGMA application_id = {APPLICATION_ID}",
    _SAY_FORMAT,
)

EVERY_CONNECTION: Final = (
    "PRAGMA synchronous = FULL",  # a commit is flushed before anybody sees it
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
    missing = {name: sql for name, sql in DEFINITIONS.items() if _SINCE.get(name, 1) <= file_format}
    retired = _RETIRED if file_format < FORMAT else {}
    for kind, name, sql in select(_CONTENTS):
        if name in missing and missing[name] == sql:
            del missing[name]
        elif name not in missing and not _is_known(kind, name) and retired.get(name) != kind:
            yield f"{kind} {name!r} was not made by tourney"
    yield from (f"{name} is missing from the file's schema, or was changed" for name in missing)


def _is_known(kind: str, name: str) -> bool:
    """Say whether a thing is a view of ours, or SQLite's own."""
    return name in (_VIEW_NAMES if kind == "view" else _STATISTICS if kind == "table" else ())


_VIEW_NAMES: Final = frozenset(view.name for view in VIEWS)


def upgrade(select: Select) -> Iterator[str]:
    """Yield the statements that bring a file of an earlier format up to date, but for its views."""
    made = {name for _, name, _ in select(_CONTENTS)}
    drops = (kind for kind in _RETIRED.items() if kind[1] != "trigger")
    yield from (f"DROP {kind} IF EXISTS {name}" for name, kind in drops)
    yield from (sql for name, sql in DEFINITIONS.items() if name not in made)
    yield _SAY_FORMAT


def has_own_views(select: Select) -> bool:
    """Say whether a file has each view as this version makes it."""
    made = {name: sql.partition(" AS ")[2] for name, sql in select(_MADE_VIEWS)}
    return all(made.get(view.name) == view.select for view in VIEWS)
