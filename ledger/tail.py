"""The end of a ledger as its writer knows it: what the next event follows, and every key so far.

Keys are looked up here and not in an index of the file: an index of hashes is dirtied anew by
nearly every event, which doubles what an append writes.
"""

import sqlite3
from typing import Final

from ledger.chain import GENESIS

ID_BYTES: Final = 16
KEY_BYTES: Final = 10  # the end of an id


_PLACES: Final = (
    "SELECT position, event_id, stream, version, recorded_us, chain FROM event"
    " WHERE position > ? ORDER BY position"
)


class Tail:
    """Kept between write transactions, and read on at the start of each."""

    def __init__(self) -> None:
        self.position = 0
        self.chain = GENESIS
        self.recorded_us = 0
        self.versions: dict[str, int] = {}  # by stream
        self.positions: dict[bytes, int] = {}  # by key

    def read_on(self, connection: sqlite3.Connection) -> None:
        """Take note of what other processes appended; inside a write transaction."""
        for place in connection.execute(_PLACES, (self.position,)):
            position, event_id, stream, version, recorded_us, self.chain = place
            self.recorded_us = max(self.recorded_us, recorded_us)
            self.versions[stream] = version
            self.positions[key_of(event_id)] = position
            self.position = position  # last: an interrupt between leaves the row to be read again


def key_of(event_id: bytes) -> bytes:
    """Return the idempotency key in an id: the same whenever the same fact is told again."""
    return event_id[-KEY_BYTES:]
