"""The tail of a ledger inside one write transaction: gives places, keys and hashes."""

import hashlib
import sqlite3

from ledger.chain import GENESIS, leaf_hash, link_hash
from ledger.errors import KeyConflict
from ledger.events.fact import type_name
from ledger.events.registry import Event, encode
from ledger.identity import StreamId, canonical_json
from ledger.recorded import Recorded
from ledger.row import Row


class Writer:
    """Appends to one stream; lives no longer than the transaction that it was made in."""

    def __init__(self, connection: sqlite3.Connection, stream: StreamId, now_us: int) -> None:
        self._connection = connection
        self._stream = stream
        tail: tuple[int, bytes, int] = connection.execute(
            "SELECT position, chain, recorded_us FROM event ORDER BY position DESC LIMIT 1"
        ).fetchone() or (0, GENESIS, 0)
        self._position, self._chain, last_us = tail
        self._now_us = max(now_us, last_us)  # a clock set back must not make as-of ambiguous
        stream_tail: tuple[int, int | None] = connection.execute(
            "SELECT coalesce(max(version), 0),"
            " (SELECT recorded_us FROM event WHERE stream = ?1 AND version = 1)"
            " FROM event WHERE stream = ?1",
            (stream,),
        ).fetchone()
        self.version, began_us = stream_tail
        self._began_ms = (self._now_us if began_us is None else began_us) // 1_000

    def has(self, event: Event) -> bool:
        """Say whether the very same event was appended before."""
        row = self._row_of(event)
        return row is not None and row.data == encode(event)

    def find(self, event: Event) -> Recorded | None:
        """Return the event's old place if it was appended before.

        Raises:
            KeyConflict: Its key is there with other content.
        """
        row = self._row_of(event)
        if row is not None and row.data != encode(event):
            raise KeyConflict(f"{type_name(event)} {'/'.join(event.natural_key)}", row.position)
        return None if row is None else row.place(event)

    def write(self, event: Event) -> Recorded:
        """Insert as the next event of ledger and stream."""
        self._position += 1
        self.version += 1
        row = Row(
            position=self._position,
            event_id=self._event_id(event),
            stream=self._stream,
            version=self.version,
            type=type_name(event),
            schema_version=event.schema_version,
            recorded_us=self._now_us,
            data=encode(event),
            leaf=b"",
            chain=b"",
        )
        leaf = leaf_hash(row.entry)
        self._chain = link_hash(self._chain, leaf)
        row = row._replace(leaf=leaf, chain=self._chain)
        self._connection.execute("INSERT INTO event VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        return row.place(event)

    def _row_of(self, event: Event) -> Row | None:
        row = self._connection.execute(
            "SELECT * FROM event WHERE event_id = ?", (self._event_id(event),)
        ).fetchone()
        return None if row is None else Row(*row)

    def _event_id(self, event: Event) -> bytes:
        """Return 16 bytes, the same whenever the same fact is told again.

        The first six are the stream's beginning in milliseconds: the keys of one tournament lie
        together in the index.
        """
        name = canonical_json([self._stream, type_name(event), *event.natural_key])
        return self._began_ms.to_bytes(6, "big") + hashlib.sha256(name).digest()[:10]
