"""Append within one write transaction: give events their positions, keys and hashes."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ledger.chain import is_tombstone, leaf_hash, link_hash, payload_digest
from ledger.errors import (
    FromTheFuture,
    InvalidEvent,
    KeyConflict,
    StaleVersion,
    UnreadableEvent,
)
from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from ledger.identity import Digest, StreamId
from ledger.recorded import Receipt, Recorded, StoredEvent, moment
from ledger.storage import schema
from ledger.storage.redaction import redact_row
from ledger.storage.tail import Tail, add_keys, key_named, key_of

ID_BYTES: Final = 16

_STREAM_AT: Final = "SELECT stream FROM event WHERE position = ?"

_DAY_US: Final = 86_400_000_000  # clocks differ, time zones are mistaken


# Each INSERT statement costs as much as ten rows of it: the trigger makes SQLite keep a journal.
_ROWS_AT_ONCE: Final = (50, 10, 1)
_VALUES: Final = f"({','.join('?' * len(StoredEvent._fields))})"
_INSERT: Final = "INSERT INTO event VALUES {}".format
_INSERTS: Final = {n_rows: _INSERT(",".join([_VALUES] * n_rows)) for n_rows in _ROWS_AT_ONCE}


class Draft(NamedTuple):
    """An event to be appended, with its key and bytes."""

    event: Event
    type: str
    key: bytes
    data: bytes


class Conflict(NamedTuple):
    """An event of another ledger with the key of one of ours, but other content."""

    row: StoredEvent
    position: int  # of ours


class EventWriter:
    """Appends events after the tail, within one transaction."""

    def __init__(self, connection: sqlite3.Connection, tail: Tail, now_us: int) -> None:
        self._connection = connection
        self._changes_before = connection.total_changes
        self._tail = tail
        self._clock_us = now_us
        self._now_us = max(now_us, tail.recorded_us)  # a clock set back must not confuse as-of
        self._id_prefix = (self._now_us // 1_000).to_bytes(6, "big")  # keeps ids in order of time
        self.position, self._chain = tail.position, tail.chain
        self._versions: dict[str, int] = {}
        self._positions: dict[bytes, int] = {}  # by key, of what was placed here
        self._pending: dict[int, StoredEvent] = {}  # by position, not inserted yet
        self._inserted_until = tail.position
        self._n_added = 0  # rows of the table of keys
        self._n_bytes = 0  # of what was placed here

    def append(
        self, stream: StreamId, drafts: Sequence[Draft], expected_version: int | None
    ) -> tuple[Receipt, ...]:
        """Append events to one stream; none if any is refused.

        Raises:
            StaleVersion: The stream is not at the expected version.
            KeyConflict: An event's key is recorded with other content.
        """
        known = {draft.key: self._find(draft.key) for draft in drafts}
        version = self._version_of(stream)
        is_stale = expected_version not in {None, version}
        if is_stale and not all(_is_known(draft, known[draft.key]) for draft in drafts):
            raise StaleVersion(stream, expected=expected_version, actual=version)
        _require_consistent(drafts, known)
        return tuple([self._receipt(stream, draft, known) for draft in drafts])

    def merge(self, theirs: StoredEvent) -> StoredEvent | Conflict | None:
        """Append an event of another ledger unchanged; return it, or the conflict with ours.

        Returns:
            None if ours is the same.

        Raises:
            InvalidEvent: Its id does not match its content.
            FromTheFuture: Its time is more than a day after this machine's: ours would follow it.
            UnreadableEvent: This tourney cannot read it.
        """
        event = theirs.decode().event
        key = key_of(theirs.event_id)
        if len(theirs.event_id) != ID_BYTES or key != key_named(
            theirs.stream, theirs.type, event.natural_key
        ):
            raise InvalidEvent(
                theirs.type, f"its id {theirs.event_id.hex()} belongs to another event"
            )
        ours = self._find(key)
        if ours is None:
            if theirs.recorded_us > self._clock_us + _DAY_US:
                times = moment(theirs.recorded_us), moment(self._clock_us)
                raise FromTheFuture(
                    theirs.position, *(f"{each:%Y-%m-%d %H:%M} UTC" for each in times)
                )
            _, event_id, stream, _, type_, schema_version, recorded_us, data, leaf, _ = theirs
            return self._place(event_id, stream, type_, schema_version, recorded_us, data, leaf)
        is_same = _is_same(event, theirs.data, ours)
        return None if is_same else Conflict(theirs, ours.position)

    def redact(self, position: int, why: str) -> None:
        """Remove the texts of an event, and append the event that says so.

        Raises:
            CannotRedact: There is no such event, its texts are removed already, or they must stay.
        """
        before = self._connection.total_changes
        redacted = redact_row(self._connection, position, why)
        self._changes_before += self._connection.total_changes - before
        [stream] = self._connection.execute(_STREAM_AT, (position,)).fetchone()
        self.append(StreamId(stream), [draft(stream, redacted)], None)

    def is_redacted(self, event_id: bytes) -> bool:
        """Say whether an event is here, by its id, and was redacted."""
        row = self._find(key_of(event_id))
        return row is not None and row.event_id == event_id and is_tombstone(row.data)

    def committed_after(self, position: int) -> Iterator[Recorded]:
        """Yield events after a position that were committed before this transaction."""
        later = "SELECT * FROM event WHERE position > ? ORDER BY position"
        for values in self._connection.execute(later, (position,)):
            yield StoredEvent.of(values).decode()

    def insert_pending(self) -> None:
        """Insert the pending rows, and the keys that are due."""
        rows = list(self._pending.values())
        start = 0
        for n_rows, insert in _INSERTS.items():
            while len(rows) - start >= n_rows:
                values = [value for row in rows[start : start + n_rows] for value in row]
                self._connection.execute(insert, values)
                start += n_rows
        self._pending.clear()
        before, self._inserted_until = self._inserted_until, self.position
        self._n_added += add_keys(self._connection, before, self.position)

    @property
    def has_recorded(self) -> bool:
        """Whether each row was inserted, and nothing else: a foreign trigger may do otherwise."""
        n_changes = self._connection.total_changes - self._changes_before
        return n_changes == self.position - self._tail.position + self._n_added

    @property
    def n_pages(self) -> int:
        """About how many pages the log grows by."""
        return 1 + self._n_bytes // schema.PAGE_BYTES if self._positions else 0

    def update_tail(self) -> None:
        """Update the tail, once this transaction is committed."""
        if self._positions:
            self._tail.add(self._versions, self._positions, self._now_us, self._chain)

    def _receipt(
        self, stream: StreamId, draft: Draft, known: dict[bytes, StoredEvent | None]
    ) -> Receipt:
        row = known[draft.key]
        is_new = row is None
        if row is None:  # a twin further on in the same append is not new
            row = known[draft.key] = self._new(stream, draft)
        return Receipt(row.record_of(draft.event), row.leaf, is_new)

    def _new(self, stream: StreamId, draft: Draft) -> StoredEvent:
        event, type_, key, data = draft
        event_id, schema_version, now_us = self._id_prefix + key, event.schema_version, self._now_us
        leaf = leaf_hash((event_id, stream.encode(), type_.encode(), schema_version, now_us, data))
        return self._place(event_id, stream, type_, schema_version, now_us, data, leaf)

    def _place(
        self,
        event_id: bytes,
        stream: str,
        type_: str,
        schema_version: int,
        recorded_us: int,
        data: bytes,
        leaf: bytes,
    ) -> StoredEvent:
        """Give an event the next position, version and link."""
        position = self.position = self.position + 1
        version = self._versions[stream] = self._version_of(stream) + 1
        chain = self._chain = link_hash(self._chain, leaf)
        placed = self._pending[position] = StoredEvent(
            position,
            event_id,
            stream,
            version,
            type_,
            schema_version,
            recorded_us,
            data,
            leaf,
            chain,
        )
        self._positions[key_of(event_id)] = position
        self._now_us = max(self._now_us, recorded_us)
        self._n_bytes += len(data)
        return placed

    def _version_of(self, stream: str) -> int:
        known = self._versions.get(stream)
        return known or self._tail.version_of(self._connection, stream)

    def _find(self, key: bytes) -> StoredEvent | None:
        position = self._positions.get(key) or self._tail.find(self._connection, key)
        if position is None:
            return None
        if position in self._pending:
            return self._pending[position]
        found = self._connection.execute("SELECT * FROM event WHERE position = ?", (position,))
        row = found.fetchone()
        if row is None:
            raise UnreadableEvent(position, "the table of keys leads to it, and it is not there")
        return StoredEvent.of(row)


def draft(stream: StreamId, event: Event) -> Draft:
    """Encode an event and derive its key.

    Raises:
        InvalidEvent: It could not be read back.
    """
    type_, data = type_name(event), EVENTS.encode(event)
    try:
        return Draft(event, type_, key_named(stream, type_, event.natural_key), data)
    except UnicodeEncodeError as error:
        raise InvalidEvent(type_, f"stream {stream!r} is not valid text: {error}") from error


def _require_consistent(drafts: Sequence[Draft], known: Mapping[bytes, StoredEvent | None]) -> None:
    """Refuse a key with two contents, recorded or within the same append."""
    firsts: dict[bytes, Draft] = {}
    for each in drafts:
        row, first = known[each.key], firsts.setdefault(each.key, each)
        if row is not None and not _is_known(each, row):
            raise _conflict(each, row.data, row.position)
        if first.data != each.data:
            raise _conflict(each, first.data, None)


def _is_known(each: Draft, row: StoredEvent | None) -> bool:
    return row is not None and _is_same(each.event, each.data, row)


def _is_same(event: Event, data: bytes, row: StoredEvent) -> bool:
    """Say whether a recorded event is the same, perhaps in an older version, or redacted since."""
    if row.data == data or row.decode().event == event:
        return True
    return payload_digest(row.data) == payload_digest(data)


def _conflict(each: Draft, other: bytes, position: int | None) -> KeyConflict:
    key = f"{each.type} {'/'.join(each.event.natural_key)}"
    recorded, offered = (Digest(payload_digest(data).hex()) for data in (other, each.data))
    return KeyConflict(key, position, recorded=recorded, offered=offered)
