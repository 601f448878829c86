"""Audit the table of keys, which leads to events, and the versions of streams."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ledger.storage.tail import KEY_BYTES, Select, keys_until

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HIGHEST: Final = b"\xff" * KEY_BYTES

_END: Final = "SELECT coalesce(max(position), 0) FROM event"
_COUNT_KEYS: Final = "SELECT count(*) FROM event_key"
_COUNT_ALL: Final = f"SELECT ({_END}), ({_COUNT_KEYS})"
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
_BEGAN_BEFORE: Final = (
    "SELECT 1 FROM event WHERE stream = CAST(? AS TEXT) AND version = 1 AND position <= ?"
)
# Mostly one of the last events is the stream's; else its last one is looked up.
_VERSION_BEFORE: Final = """\
SELECT coalesce(
  (SELECT version FROM
    (SELECT stream, version FROM event WHERE position <= ?2 ORDER BY position DESC LIMIT 1000)
   WHERE stream = CAST(?1 AS TEXT) LIMIT 1),
  (SELECT version FROM event WHERE position =
    (SELECT max(position) FROM event WHERE stream = CAST(?1 AS TEXT) AND position <= ?2)))"""


def faults_in_number_of_rows(select: Select) -> Iterator[str]:
    """Yield that the table of keys has too few rows, or too many."""
    [(end, n_keys)] = select(_COUNT_ALL)  # at once: somebody may append meanwhile
    if n_keys != keys_until(end):
        yield f"the table of keys has {n_keys:,} rows, expected {keys_until(end):,}"


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
