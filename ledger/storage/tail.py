"""The end of a ledger, which the next append builds on, and what finds older events.

To open a long ledger costs no more than a short one: the newest keys are read into memory, and all
older ones are looked up in the table `event_key`. It grows by many events at once, in the order of
the table, since each event alone would change a page of its own.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, TypeAlias

import msgspec

from ledger.chain import GENESIS
from ledger.storage import schema

KEY_BYTES: Final = 10  # the end of an id
_encode: Final = msgspec.json.Encoder().encode

_LAST: Final = "SELECT position, recorded_us, chain FROM event ORDER BY position DESC LIMIT 1"
_PLACES: Final = (
    "SELECT position, event_id, stream, version FROM event WHERE position > ? ORDER BY position"
)
_ADD_KEYS: Final = (
    "INSERT INTO event_key SELECT substr(event_id, -10), position FROM event"
    " WHERE position > ? AND position <= ? ORDER BY 1"
)
_FIND: Final = "SELECT position FROM event_key WHERE key = ?"
# Mostly one of the last events is the stream's; else its events are counted.
_VERSION: Final = """\
SELECT coalesce(
  (SELECT version FROM (SELECT stream, version FROM event ORDER BY position DESC LIMIT 1000)
   WHERE stream = ?1 LIMIT 1),
  (SELECT count(*) FROM event WHERE stream = ?1))"""

_IN_STREAMS: Final = (
    "SELECT position FROM event WHERE position > ?1 AND position <= ?2"
    " AND stream IN (SELECT value FROM json_each(?3)){}"
).format
_OF_TYPES: Final = " AND type IN (SELECT value FROM json_each(?4))"
_STREAMS: Final = "SELECT stream FROM event WHERE version = 1{} ORDER BY +position".format
_WITH_TYPES: Final = (
    " AND stream IN (SELECT stream FROM event WHERE type IN (SELECT value FROM json_each(?)))"
)


def key_of(event_id: bytes) -> bytes:
    """Return the idempotency key in an event id: the same for the same fact."""
    return event_id[-KEY_BYTES:]


def key_named(stream: str, type_: str, natural_key: Iterable[str]) -> bytes:
    """Return the idempotency key of a fact, by what identifies it within its type and stream."""
    return sha256(_encode([stream, type_, *natural_key])).digest()[:KEY_BYTES]


def keys_until(position: int) -> int:
    """Return the last position in the table of keys, of a ledger that ends at a position."""
    return position - position % schema.KEYS_AT_ONCE


def add_keys(connection: sqlite3.Connection, before: int, position: int) -> int:
    """Add the keys that are due since an earlier end; return how many."""
    known, due = keys_until(before), keys_until(position)
    if known < due:
        connection.execute(_ADD_KEYS, (known, due))
    return due - known


Select: TypeAlias = Callable[..., list[tuple[Any, ...]]]
"""Returns all rows of a query, given its parameters."""


def positions_in(
    select: Select,
    streams: Sequence[str],
    types: Collection[str] | None,
    after: int,
    until: int,
) -> list[int]:
    """Return where the events of some streams are, or of some types in them, in order.

    Args:
        select: Of a ledger.
        streams: The streams.
        types: The types; None: all.
        after: Only positions after this one.
        until: Only positions up to this one.
    """
    of_types, *lists = ("", streams) if types is None else (_OF_TYPES, streams, sorted(types))
    found = select(_IN_STREAMS(of_types), after, until, *map(_json, lists))
    return sorted(position for (position,) in found)  # faster than by SQLite


def streams_in(select: Select, types: Collection[str] | None) -> list[str]:
    """Return the streams in the order in which they began, or those with events of some types.

    Args:
        select: Of a ledger.
        types: The types; None: all.
    """
    chosen = [] if types is None else [_json(sorted(types))]
    found = select(_STREAMS(_WITH_TYPES if chosen else ""), *chosen)
    return [stream for (stream,) in found]


def _json(values: Sequence[str]) -> str:
    return _encode(values).decode()


class Tail:
    """The ledger's last position, hash, versions and newest keys, kept between transactions."""

    def __init__(self) -> None:
        self.position = 0
        self.chain = GENESIS
        self.recorded_us = 0  # the latest: a clock set back stamps no earlier time
        self._versions: dict[str, int] = {}  # by stream, as far as known
        self._positions: dict[bytes, int] = {}  # by key, of what is not in the table

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Read what other processes appended; call it inside a write transaction."""
        last = connection.execute(_LAST).fetchone()
        if last is None or last[0] == self.position:
            return
        position, recorded_us, chain = last
        if self.position < keys_until(position):
            self._versions.clear()
            self._positions.clear()
        read = max(self.position, keys_until(position))
        for place, event_id, stream, version in connection.execute(_PLACES, (read,)):
            self._versions[stream] = version
            self._positions[key_of(event_id)] = place
        self.recorded_us = max(self.recorded_us, recorded_us)
        self.chain = chain
        self.position = position  # last: an interrupt before it leaves all to be read again

    def add(
        self, versions: dict[str, int], positions: dict[bytes, int], recorded_us: int, chain: bytes
    ) -> None:
        """Add what a transaction committed: the streams' versions, and the positions by key."""
        position = self.position + len(positions)
        self._versions |= versions
        self._positions |= positions
        if (known := keys_until(position)) > self.position:
            self._positions = {k: at for k, at in self._positions.items() if at > known}
        self.recorded_us, self.chain = recorded_us, chain
        self.position = position  # last, as above

    def version_of(self, connection: sqlite3.Connection, stream: str) -> int:
        """Return a stream's version; 0 if it has not begun."""
        if stream not in self._versions:
            [version] = connection.execute(_VERSION, (stream,)).fetchone()
            self._versions[stream] = version
        return self._versions[stream]

    def find(self, connection: sqlite3.Connection, key: bytes) -> int | None:
        """Return the position of the event with a key; None if there is none."""
        position = self._positions.get(key)
        if position is None and keys_until(self.position):
            found = connection.execute(_FIND, (key,)).fetchone()
            position = found[0] if found else None
        return position
