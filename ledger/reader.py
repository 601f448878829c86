"""Read a ledger: decoded events or stored rows, in pages, up to any position."""

import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from operator import ge
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ledger.chain import GENESIS, Head, is_tombstone
from ledger.errors import CannotRead, UnreadableEvent
from ledger.identity import Digest, StreamId
from ledger.recorded import DAMAGED_ROW, Recorded, StoredEvent, decode_stored, microseconds
from ledger.storage.connection import is_corrupt

_LAST_POSITION: Final = 2**63 - 1  # of any SQLite table
_PAGE: Final = 250  # rows that one read transaction spans: short, so that the WAL can reset
_LOOKED_UP: Final = 1_000  # rows that one query finds by their positions
Columns: TypeAlias = tuple[Any, ...]  # of a row, as the query names them
_COLUMNS: Final = "position, recorded_us, type, schema_version, data, stream, version, chain"
_EVENTS: Final = f"SELECT {_COLUMNS} FROM event WHERE position > ? AND position <= ?"  # noqa: S608 (constants)
_AT: Final = (
    f"SELECT {_COLUMNS} FROM event"  # noqa: S608
    " WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position"
)
_POSITIONS: Final = (
    "SELECT position FROM event WHERE position > ?1 AND position <= ?2"
    " AND stream IN (SELECT value FROM json_each(?3)){}"
).format
_AND_TYPES: Final = " AND type IN (SELECT value FROM json_each(?4))"
_STREAMS: Final = "SELECT stream FROM event WHERE version = 1{} ORDER BY +position".format
_WITH_TYPES: Final = (
    " AND stream IN (SELECT stream FROM event WHERE type IN (SELECT value FROM json_each(?)))"
)
# Not looked up by type: an audit goes through all rows, whatever an index leads to.
_OF_TYPES: Final = "{} AND +type IN (SELECT value FROM json_each(?))".format
_LAST_ROWS: Final = (
    "SELECT * FROM event WHERE position <= ?1 AND (?2 = '' OR type = ?2)"
    " ORDER BY position DESC LIMIT ?3"
)
_NO_LIMIT: Final = -1  # to SQLite's LIMIT
_WITH_ID: Final = (
    "SELECT * FROM event WHERE lower(hex(event_id)) LIKE ? || '%' ESCAPE '\\' ORDER BY position"
)
_LAST_STREAM: Final = "SELECT stream FROM event ORDER BY position DESC LIMIT 1"
# An event's version is the number of its stream's events.
_IS_WHOLE: Final = """\
SELECT version = (SELECT count(*) FROM event WHERE stream = last.stream)
FROM (SELECT stream, version FROM event ORDER BY position DESC LIMIT 1) AS last"""
_ROWS: Final = "SELECT * FROM event WHERE position > ? AND position <= ?"
_IS_GONE: Final = re.compile("no such (column|table)").match
_PAGE_OF: Final = "{} ORDER BY position LIMIT ?".format
_PLACED: Final = (str, int, bytes)  # stream, version and link of a sound row


class LedgerReader:
    """Reads an open ledger; threads may share one."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        require_unchanged: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._require_unchanged = require_unchanged
        self._turn = threading.Lock()  # a connection does one thing at a time
        self.path = path

    def read(
        self,
        *,
        after: int | None = None,
        until: int | None = None,
        stream: StreamId | None = None,
        types: Collection[str] | None = None,
    ) -> Iterator[Recorded]:
        """Yield events in order of position.

        Args:
            after: Only events after this position. Without a stream, all of them are gone through,
                not looked up by type: news are few, and an audit sees every row.
            until: Only events up to this position.
            stream: Only events of this stream.
            types: Only events of these types.

        Raises:
            UnreadableEvent: An event's type, version, shape or time is unknown.
            CannotRead: The file is damaged.
        """
        last = self.head.position if until is None else until
        if stream is None and (types is None or after is not None):
            chosen = [] if types is None else [_json(sorted(types))]
            query = _OF_TYPES(_EVENTS) if chosen else _EVENTS
            pages = self.pages(_PAGE_OF(query), after or 0, last, *chosen)
        else:
            streams = self.streams() if stream is None else (stream,)
            pages = self._pages_at(self.positions(streams, types, after or 0, last))
        for page in pages:
            yield from _recorded(page)

    def positions(
        self, streams: Sequence[StreamId], types: Collection[str] | None, after: int, until: int
    ) -> list[int]:
        """Return where the events of some streams are, or of some types in them, in order.

        Args:
            streams: The streams.
            types: The types; None: all.
            after: Only positions after this one.
            until: Only positions up to this one.

        Raises:
            CannotRead: The file is damaged.
        """
        chosen = (streams,) if types is None else (streams, sorted(types))
        query = _POSITIONS("" if types is None else _AND_TYPES)
        found = self.select(query, after, until, *map(_json, chosen))
        return sorted(position for (position,) in found)  # faster than by SQLite

    def at(self, positions: Iterable[int]) -> Iterator[Recorded]:
        """Yield the events at some positions, in order.

        Raises:
            UnreadableEvent: An event's type, version, shape or time is unknown.
            CannotRead: The file is damaged.
        """
        for page in self._pages_at(sorted(positions)):
            yield from _recorded(page)

    def rows(self, *, after: int = 0, until: int | None = None) -> Iterator[StoredEvent]:
        """Yield events as stored, not decoded: to show, export or merge them.

        Raises:
            CannotRead: The file is damaged.
        """
        last = self.head.position if until is None else until
        for page in self.pages(_PAGE_OF(_ROWS), after, last):
            yield from map(StoredEvent.of, page)

    def newest_rows(
        self, *, until: int | None = None, event_type: str | None = None, limit: int | None
    ) -> tuple[StoredEvent, ...]:
        """Return the newest events as stored, in order of position.

        Raises:
            CannotRead: The file is damaged.
        """
        last = self.head.position if until is None else until
        n_most = _NO_LIMIT if limit is None else limit
        rows = self.select(_LAST_ROWS, last, event_type or "", n_most)
        return tuple(map(StoredEvent.of, rows[::-1]))

    def rows_with_id(self, beginning: str) -> tuple[StoredEvent, ...]:
        """Return the events whose id starts with some of its 32 hexadecimal characters.

        Raises:
            CannotRead: The file is damaged.
        """
        escaped = beginning.lower().replace("%", r"\%").replace("_", r"\_")
        return tuple(map(StoredEvent.of, self.select(_WITH_ID, escaped)))

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection, for other queries; triggers keep the file append-only."""
        return self._connection

    @property
    def head(self) -> Head:
        """The last position and the chain's value there; position 0 when empty.

        Raises:
            CannotRead: The file is damaged.
        """
        last = self.select("SELECT position, chain FROM event ORDER BY position DESC LIMIT 1")
        [(position, chain)] = last or [(0, GENESIS)]
        if not isinstance(chain, bytes):
            raise CannotRead(self.path, f"the row at position {position} is damaged")
        return Head(position, Digest(chain.hex()))

    def require_unchanged(self) -> None:
        """Refuse what was read without locks, if somebody wrote meanwhile.

        Raises:
            ChangedMeanwhile: Read it anew.
        """
        if self._require_unchanged is not None:
            self._require_unchanged()

    def chain_at(self, position: int) -> Digest | None:
        """Return the chain's value at a position; None after the ledger's end."""
        if position == 0:
            return Digest(GENESIS.hex())
        if position > _LAST_POSITION:
            return None
        for (chain,) in self.select("SELECT chain FROM event WHERE position = ?", position):
            if not isinstance(chain, bytes):
                raise UnreadableEvent(position, DAMAGED_ROW)
            return Digest(chain.hex())
        return None

    def streams(self, *, types: Collection[str] | None = None) -> tuple[StreamId, ...]:
        """Return the streams in the order in which they began, or those with events of a type."""
        chosen = () if types is None else (_json(sorted(types)),)
        rows = self.select(_STREAMS(_WITH_TYPES if chosen else ""), *chosen)
        found = [stream for (stream,) in rows]
        known = found if types is None else self.streams()
        newest = [stream for (stream,) in self.select(_LAST_STREAM)]
        is_sound = len(set(found)) == len(found) and all(isinstance(each, str) for each in found)
        if not is_sound or not set(newest).issubset(known):  # an index is damaged, or a row
            raise CannotRead(self.path, "its streams cannot be told apart", is_damaged=True)
        return tuple(map(StreamId, found))

    def require_whole(self) -> None:
        """Refuse a file that lacks events of the stream that grew last, or whose index hides some.

        It takes a second for five million events, so it is for what would be wrong in silence.

        Raises:
            CannotRead: The file is damaged.
        """
        for (is_whole,) in self.select(_IS_WHOLE):
            if not is_whole:
                raise CannotRead(self.path, "events are missing or hidden", is_damaged=True)

    def require_sound_pages(self) -> None:
        """Refuse a file in which SQLite finds damage: what seems missing may be hidden by it.

        Raises:
            CannotRead: The file is damaged.
        """
        for (found,) in self.select("PRAGMA integrity_check(1)"):
            if found != "ok":
                raise CannotRead(self.path, found, is_damaged=True)

    def position_at(self, at: datetime) -> int:
        """Return the last position up to which everything was recorded by a time; 0: none.

        After a merge an event may be older than the one before it; the prefix ends before the first
        event that was recorded later.
        """
        [(first_later,)] = self.select(
            "SELECT min(position) FROM event WHERE recorded_us > ?", microseconds(at)
        )
        return self.head.position if first_later is None else int(first_later) - 1

    def select(self, query: str, *parameters: str | bytes | int) -> list[Columns]:
        """Return all rows of an SQL query.

        Raises:
            CannotRead: The file is damaged.
            ChangedMeanwhile: Somebody wrote to a file that is read without locks.
        """
        try:
            with self._turn:
                rows = self._connection.execute(query, parameters).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self.require_unchanged()  # part of it may be of another time
            said = str(error)
            why = f"another program changed its tables: {said}" if _IS_GONE(said) else said
            raise CannotRead(self.path, why, is_damaged=is_corrupt(error)) from error
        self.require_unchanged()
        return rows

    def pages(self, query: str, after: int, *parameters: str | int) -> Iterator[list[Columns]]:
        """Yield the rows of an SQL query page by page, each in a short transaction of its own.

        Args:
            query: Returns positions in its first column, ascending. Its parameters are the position
                to start after, the other parameters, and the size of a page.
            after: The position to start after.
            parameters: The other parameters.

        Raises:
            CannotRead: The file is damaged.
        """
        while page := self.select(query, after, *parameters, _PAGE):
            positions = [after, *(row[0] for row in page)]
            if any(map(ge, positions, positions[1:])):  # else an audit would go round for ever
                why = f"positions do not increase after {after}"
                raise CannotRead(self.path, why, is_damaged=True)
            yield page
            after = positions[-1]

    def _pages_at(self, positions: Sequence[int]) -> Iterator[list[Columns]]:
        """Yield the rows at some positions, which ascend, page by page."""
        for start in range(0, len(positions), _LOOKED_UP):
            yield self.select(_AT, _json(positions[start : start + _LOOKED_UP]))


def _json(values: Sequence[str] | Sequence[int]) -> str:
    return msgspec.json.encode(values).decode()


def _recorded(page: Sequence[Columns]) -> Iterator[Recorded]:
    for position, recorded_us, type_, schema_version, data, stream, version, link in page:
        event = decode_stored(position, recorded_us, type_, schema_version, data)
        if (type(stream), type(version), type(link)) != _PLACED:
            raise UnreadableEvent(position, DAMAGED_ROW)
        yield Recorded(position, stream, version, recorded_us, link, event, is_tombstone(data))
