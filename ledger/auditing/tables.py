"""Audit the tables that lead to events, of keys and of kinds, and the versions of streams."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ledger.reader import Columns
from ledger.storage import schema
from ledger.storage.tail import KEY_BYTES, Select, keys_until, kinds_until

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HIGHEST: Final = b"\xff" * KEY_BYTES
_encode: Final = msgspec.json.Encoder().encode

_END: Final = "SELECT coalesce(max(position), 0) FROM event"
_COUNT_KEYS: Final = "SELECT count(*) FROM event_key"
_COUNT_ALL: Final = f"SELECT ({_END}), ({_COUNT_KEYS}), (SELECT count(*) FROM event_kind)"  # noqa: S608
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
_OF_KIND: Final = (
    "SELECT json_group_array(position) FROM event_kind WHERE stream = CAST(? AS TEXT)"
    " AND type = CAST(? AS TEXT) AND counted = ? AND position > ? AND position <= ?"
)
_LOST_KINDS: Final = (
    f"SELECT position FROM (SELECT position, stream, type, {schema.COUNTED} AS counted FROM event"  # noqa: S608 (a constant)
    " WHERE position > ? AND position <= ?) AS found WHERE NOT EXISTS"
    " (SELECT 1 FROM event_kind AS kind WHERE kind.stream = found.stream AND"
    " kind.type = found.type AND kind.counted = found.counted AND kind.position = found.position)"
)
_BEGAN_BEFORE: Final = (
    "SELECT 1 FROM event WHERE stream = CAST(? AS TEXT) AND version = 1 AND position <= ?"
)
# Mostly one of the last events is the stream's; else its last one is looked up.
_VERSION_BEFORE: Final = """\
SELECT coalesce(
  (SELECT version FROM
    (SELECT stream, version FROM event WHERE position <= ?2 ORDER BY position DESC LIMIT 1000)
   WHERE stream = CAST(?1 AS TEXT) LIMIT 1),
  (SELECT version FROM event WHERE position = max(
    (SELECT coalesce(max(position), 0) FROM event_kind
     WHERE stream = CAST(?1 AS TEXT) AND position <= ?2),
    (SELECT coalesce(max(position), 0) FROM event
     WHERE stream = CAST(?1 AS TEXT) AND position > ?3 AND position <= ?2))))"""


def faults_in_number_of_rows(select: Select) -> Iterator[str]:
    """Yield that a table has too few rows, or too many."""
    [(end, n_keys, n_kinds)] = select(_COUNT_ALL)  # at once: somebody may append meanwhile
    for what, found, expected in (
        ("keys", n_keys, keys_until(end)),
        ("kinds", n_kinds, kinds_until(end)),
    ):
        if found != expected:
            yield f"the table of {what} has {found:,} rows, expected {expected:,}"


class KeyTable:
    """The table of keys in order of position, to audit whether it leads to each event.

    It is read once, in its own order: looking up each key is several times slower.
    """

    def __init__(self, select: Select, until: int) -> None:
        """Take a ledger, and its last position."""
        self._select, self._until = select, keys_until(until)

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


class KindTable:
    """The table of kinds, to audit whether it leads to each event of a range."""

    def __init__(self, select: Select, after: int, last: int) -> None:
        """Take a ledger, and the positions before the range and at its end."""
        [(end,)] = select(_END)
        self._select, self._after, self._last = select, after, min(last, kinds_until(end))
        self._places = defaultdict[tuple[Any, ...], list[int]](list)

    def add(self, page: Sequence[Columns]) -> None:
        """Take more rows, as `ledger.auditing.ranges.ROWS` selects them."""
        places, last = self._places, self._last
        positions, _, streams, types, *_, counted = zip(*page, strict=True)
        kinds = zip(streams, types, counted, strict=True)
        for position, kind in zip(positions, kinds, strict=True):
            if position <= last:
                places[kind].append(position)

    def lost(self) -> Iterator[int]:
        """Yield the events to which the table does not lead.

        Raises:
            CannotRead: The file is damaged.
        """
        if not all(self._leads_to(kind, places) for kind, places in self._places.items()):
            lost = self._select(_LOST_KINDS, self._after, self._last)
            yield from (position for (position,) in lost)

    def _leads_to(self, kind: tuple[Any, ...], places: Sequence[int]) -> bool:
        [(found,)] = self._select(_OF_KIND, *kind, self._after, self._last)
        return bool(found.encode() == _encode(places))


class StreamVersions(dict[bytes, int]):
    """The last version of each stream as events are read; at first, the one up to a position."""

    def __init__(self, select: Select, until: int) -> None:
        """Take a ledger, and the position before the first event that is read."""
        super().__init__()
        self._select, self._until = select, until

    def __missing__(self, stream: bytes) -> int:
        """Look up the version of a stream that was not read yet; 0 if it had not begun."""
        has_begun = self._select(_BEGAN_BEFORE, stream, self._until)
        places = stream, self._until, kinds_until(self._until)
        found = has_begun and self._select(_VERSION_BEFORE, *places)
        version = self[stream] = found[0][0] if found else 0
        return version
