"""The end of a ledger as its writer knows it: what the next event follows, and every key so far.

Keys are looked up here and not in an index of the file: they are hashes, and an index of them
would dirty a page for nearly every event, which costs more than all the rest of an append.
"""

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

from ledger.chain import GENESIS

KEY_BYTES: Final = 10


class Place(NamedTuple):
    """Where an event went; in the order of the query below."""

    position: int
    event_id: bytes
    stream: str
    version: int
    recorded_us: int
    chain: bytes


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
        self.take(map(Place._make, connection.execute(_PLACES, (self.position,))))

    def take(self, places: Iterable[Place]) -> None:
        """Take note of events that are there to stay, in order."""
        for place in places:
            self.position, self.chain = place.position, place.chain
            self.recorded_us = max(self.recorded_us, place.recorded_us)
            self.versions[place.stream] = place.version
            self.positions[key_of(place.event_id)] = place.position


def key_of(event_id: bytes) -> bytes:
    """Return the idempotency key in an id: the same whenever the same fact is told again."""
    return event_id[-KEY_BYTES:]
