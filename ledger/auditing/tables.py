"""The versions of streams, as an audit expects them."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

Select: TypeAlias = Callable[..., list[tuple[Any, ...]]]
"""Returns all rows of a query, given its parameters."""

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
