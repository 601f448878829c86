"""The end of a ledger, which the next append builds on, and where its keys are found.

To open a long ledger costs no more than a short one: the newest keys are read into memory, and all
older ones are looked up in the table `event_key`. That table grows by many keys at once, in their
order, since each single key would change a page of its own.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ledger.chain import GENESIS
from ledger.storage import schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEY_BYTES: Final = 10  # the end of an id
_HIGHEST: Final = b"\xff" * KEY_BYTES
_encode: Final = msgspec.json.Encoder().encode

_LAST: Final = "SELECT position, recorded_us, chain FROM event ORDER BY position DESC LIMIT 1"
_PLACES: Final = (
    "SELECT position, event_id, stream, version FROM event WHERE position > ? ORDER BY position"
)
_INDEX_KEYS: Final = (
    "INSERT INTO event_key SELECT substr(event_id, -10), position FROM event"
    " WHERE position > ? AND position <= ? ORDER BY 1"
)
_N_KEYS: Final = (
    "SELECT (SELECT coalesce(max(position), 0) FROM event), (SELECT count(*) FROM event_key)"
)
_COUNT_KEYS: Final = "SELECT count(*) FROM event_key"
# In one row, since Python takes several times as long to read many.
_KEYS_BETWEEN: Final = (
    "SELECT CAST(group_concat(key, '') AS BLOB), group_concat(position - 1) FROM event_key"  # noqa: S608 (a constant)
    f" WHERE key >= ? AND key <= ? AND length(key) = {KEY_BYTES} AND position BETWEEN 1 AND ?"
    " AND typeof(key) = 'blob' AND typeof(position) = 'integer'"  # in a damaged file, anything
)
_LOST_KEYS: Final = (
    "SELECT position FROM event WHERE position > ? AND position <= ? AND position IS NOT"
    " (SELECT position FROM event_key WHERE key = substr(event_id, -10))"
)
_FIND: Final = "SELECT position FROM event_key WHERE key = ?"
# Mostly one of the last events is the stream's; else its events are counted in an index.
_VERSION: Final = """\
SELECT coalesce(
  (SELECT version FROM (SELECT stream, version FROM event ORDER BY position DESC LIMIT 1000)
   WHERE stream = ?1 LIMIT 1),
  (SELECT count(*) FROM event WHERE stream = ?1))"""

_BEGAN_BEFORE: Final = (
    "SELECT 1 FROM event WHERE stream = CAST(? AS TEXT) AND version = 1 AND position <= ?"
)
_VERSION_BEFORE: Final = """\
SELECT coalesce(
  (SELECT version FROM
    (SELECT stream, version FROM event WHERE position <= ?2 ORDER BY position DESC LIMIT 1000)
   WHERE stream = CAST(?1 AS TEXT) LIMIT 1),
  (SELECT version FROM event WHERE stream = CAST(?1 AS TEXT) AND position <= ?2
   ORDER BY position DESC LIMIT 1))"""


def key_of(event_id: bytes) -> bytes:
    """Return the idempotency key in an event id: the same for the same fact."""
    return event_id[-KEY_BYTES:]


def key_named(stream: str, type_: str, natural_key: Iterable[str]) -> bytes:
    """Return the idempotency key of a fact, by what identifies it within its type and stream."""
    return sha256(_encode([stream, type_, *natural_key])).digest()[:KEY_BYTES]


def indexed_until(position: int) -> int:
    """Return the last position whose key is in the table, of a ledger that ends at a position."""
    return position - position % schema.KEYS_AT_ONCE


def index_keys(connection: sqlite3.Connection, before: int, position: int) -> int:
    """Index the keys that are due since an earlier end of the ledger; return how many."""
    indexed, due = indexed_until(before), indexed_until(position)
    if indexed < due:
        connection.execute(_INDEX_KEYS, (indexed, due))
    return due - indexed


Select: TypeAlias = Callable[..., list[tuple[Any, ...]]]
"""Returns all rows of a query, given its parameters."""


def faults_in_number_of_keys(select: Select) -> Iterator[str]:
    """Yield that the table has too few rows, or too many."""
    [(position, n_keys)] = select(_N_KEYS)
    if n_keys != (expected := indexed_until(position)):
        yield f"the table of keys has {n_keys:,} rows, expected {expected:,}"


class KeyTable:
    """The table of keys in order of position, to audit whether it leads to each event.

    It is read once, in its own order: looking up each key is several times slower.
    """

    def __init__(self, select: Select, until: int) -> None:
        """Take a ledger, and its last position."""
        self._select, self._until = select, indexed_until(until)

    def lost(self, after: int, last: int, keys: bytes) -> Iterator[int]:
        """Yield the events of a range that the table does not lead to.

        Args:
            after: The position before the range.
            last: The last position of the range.
            keys: Of the events in the range, one after the other.
        """
        last = min(last, self._until)
        if after < last and not self._leads_to(after, last, keys):
            yield from (position for (position,) in self._select(_LOST_KEYS, after, last))

    def _leads_to(self, after: int, last: int, keys: bytes) -> bool:
        found, is_found = self._by_position
        is_whole = last <= len(found) and bool(is_found[after:last].all())
        return is_whole and found[after:last].tobytes() == keys[: KEY_BYTES * (last - after)]

    @cached_property
    def _by_position(self) -> tuple["NDArray[np.void]", "NDArray[np.bool_]"]:
        """The keys, each at its event's place, and whether there is one."""
        import numpy as np  # noqa: PLC0415  # which takes long to import

        [(n_keys,)] = self._select(_COUNT_KEYS)
        n_places = min(n_keys, self._until)
        found, is_found = np.zeros(n_places, f"V{KEY_BYTES}"), np.zeros(n_places, np.bool_)
        for first in map(bytes, zip(range(256))):  # so that few are in memory at a time
            [(keys, places)] = self._select(_KEYS_BETWEEN, first, first + _HIGHEST, n_places)
            if keys:
                at = np.fromstring(places, np.int64, sep=",")
                found[at] = np.frombuffer(keys, found.dtype)
                is_found[at] = True
        return found, is_found


class StreamVersions(dict[bytes, int]):
    """The last version of each stream as events are read; at first, the one up to a position."""

    def __init__(self, select: Select, until: int) -> None:
        """Take a ledger, and the position before the first event that is read."""
        super().__init__()
        self._select, self._until = select, until

    def __missing__(self, stream: bytes) -> int:
        """Look up the version of a stream that was not read yet; 0 if it had not begun."""
        has_begun = self._select(_BEGAN_BEFORE, stream, self._until)
        found = has_begun and self._select(_VERSION_BEFORE, stream, self._until)
        version = self[stream] = found[0][0] if found else 0
        return version


class Tail:
    """The ledger's last position, hash, versions and newest keys, kept between transactions."""

    def __init__(self) -> None:
        self.position = 0
        self.chain = GENESIS
        self.recorded_us = 0  # the latest: a clock set back stamps no earlier time
        self._versions: dict[str, int] = {}  # by stream, as far as known
        self._positions: dict[bytes, int] = {}  # by key, of what is not indexed

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Read what other processes appended; call it inside a write transaction."""
        last = connection.execute(_LAST).fetchone()
        if last is None or last[0] == self.position:
            return
        position, recorded_us, chain = last
        if self.position < indexed_until(position):
            self._versions.clear()
            self._positions.clear()
        read = max(self.position, indexed_until(position))
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
        if (indexed := indexed_until(position)) > self.position:
            self._positions = {k: at for k, at in self._positions.items() if at > indexed}
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
        if position is None and indexed_until(self.position):
            found = connection.execute(_FIND, (key,)).fetchone()
            position = found[0] if found else None
        return position
