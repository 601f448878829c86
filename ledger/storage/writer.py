"""Append within one write transaction: give events their positions, keys and hashes."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ledger.chain import GENESIS, is_tombstone, leaf_hash, link_hash, payload_digest
from ledger.errors import FromTheFuture, InvalidEvent, KeyConflict, StaleVersion, UnreadableEvent
from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from ledger.identity import Digest, StreamId, key_named, key_of
from ledger.recorded import Receipt, Recorded, StoredEvent, moment
from ledger.storage.redaction import redact_row
from ledger.storage.schema import KEY

ID_BYTES: Final = 16
_DAY_US: Final = 86_400_000_000  # clocks differ, time zones are mistaken

_LAST: Final = "SELECT * FROM event ORDER BY position DESC LIMIT 1"
_OF_TYPES: Final = (
    "SELECT * FROM event WHERE type IN (SELECT value FROM json_each(?)) ORDER BY position"
)
_STREAM_AT: Final = "SELECT stream FROM event WHERE position = ?"
_WITH_KEY: Final = f"SELECT * FROM event WHERE {KEY} = ?"  # noqa: S608 (a constant)
# An event's version is the number of its stream's events.
_VERSION: Final = "SELECT count(*) FROM event WHERE stream = ?"
_INSERT: Final = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


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
    """Appends events after the last one, within one transaction."""

    def __init__(self, connection: sqlite3.Connection, now_us: int) -> None:
        self._connection = connection
        self._changes_before = connection.total_changes
        self._clock_us = now_us
        last = connection.execute(_LAST).fetchone()
        before = StoredEvent.of(last) if last else _NOTHING
        self.position, self._chain = before.position, before.chain
        self._versions = {before.stream: before.version}  # by stream, as far as known
        self._now_us = max(now_us, before.recorded_us)  # a clock set back must not confuse as-of
        self._id_prefix = (self._now_us // 1_000).to_bytes(6, "big")  # keeps ids in order of time
        self.n_new = 0

    def append(
        self, stream: StreamId, drafts: Sequence[Draft], expected_version: int | None
    ) -> tuple[Receipt, ...]:
        """Append events to one stream; none if any is refused.

        Raises:
            StaleVersion: The stream is not at the expected version.
            KeyConflict: An event's key is recorded with other content.
        """
        rows_by_key = {draft.key: self._find(draft.key) for draft in drafts}
        version = self._version_of(stream)
        is_stale = expected_version not in {None, version}
        if is_stale and not all(_is_known(draft, rows_by_key[draft.key]) for draft in drafts):
            raise StaleVersion(stream, expected=expected_version, actual=version)
        _require_consistent(drafts, rows_by_key)
        receipts, rows = list[Receipt](), list[StoredEvent]()
        for each in drafts:
            row = rows_by_key[each.key]
            is_new = row is None
            if row is None:  # a twin further on in the same append is not new
                row = rows_by_key[each.key] = self._new(stream, each)
                rows.append(row)
            receipts.append(Receipt(row.record_of(each.event), row.leaf, is_new))
        self._insert(rows)
        return tuple(receipts)

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
            placed = self._placed(theirs)
            self._insert([placed])
            return placed
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

    def of_types(self, types: Collection[str]) -> Iterator[Recorded]:
        """Yield the events of some types that the ledger has at this moment, in order."""
        for values in self._connection.execute(_OF_TYPES, (json.dumps(sorted(types)),)):
            yield StoredEvent.of(values).decode()

    @property
    def has_recorded(self) -> bool:
        """Whether each row was inserted, and nothing else: a foreign trigger may do otherwise."""
        return self._connection.total_changes - self._changes_before == self.n_new

    def _insert(self, rows: Sequence[StoredEvent]) -> None:
        self._connection.executemany(_INSERT, rows)
        self.n_new += len(rows)

    def _new(self, stream: StreamId, draft: Draft) -> StoredEvent:
        event, type_, key, data = draft
        event_id, schema_version, now_us = self._id_prefix + key, event.schema_version, self._now_us
        leaf = leaf_hash((event_id, stream.encode(), type_.encode(), schema_version, now_us, data))
        return self._placed(
            StoredEvent(0, event_id, stream, 0, type_, schema_version, now_us, data, leaf, b"")
        )

    def _placed(self, event: StoredEvent) -> StoredEvent:
        """Give an event the next position, version and link."""
        self.position += 1
        version = self._versions[event.stream] = self._version_of(event.stream) + 1
        self._chain = link_hash(self._chain, event.leaf)
        self._now_us = max(self._now_us, event.recorded_us)
        return event._replace(position=self.position, version=version, chain=self._chain)

    def _version_of(self, stream: str) -> int:
        """Return a stream's version; 0 if it has not begun."""
        if stream not in self._versions:
            [self._versions[stream]] = self._connection.execute(_VERSION, (stream,)).fetchone()
        return self._versions[stream]

    def _find(self, key: bytes) -> StoredEvent | None:
        row = self._connection.execute(_WITH_KEY, (key,)).fetchone()
        event = StoredEvent.of(row) if row else None
        if event is not None and key_of(event.event_id) != key:
            raise UnreadableEvent(event.position, "an index leads to it from the key of another")
        return event


_NOTHING: Final = StoredEvent(0, b"", "", 0, "", 0, 0, b"", b"", GENESIS)
"""What is before the first event."""


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


def _require_consistent(drafts: Sequence[Draft], rows: Mapping[bytes, StoredEvent | None]) -> None:
    """Refuse a key with two contents, recorded or within the same append."""
    firsts: dict[bytes, Draft] = {}
    for draft in drafts:
        row, first = rows[draft.key], firsts.setdefault(draft.key, draft)
        if row is not None and not _is_known(draft, row):
            raise _conflict(draft, row.data, row.position)
        if first.data != draft.data:
            raise _conflict(draft, first.data, None)


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
