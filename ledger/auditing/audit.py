"""Audit a ledger's bytes: is every event there, in order and unchanged?

The hash chain reveals changed, missing and swapped events. Of a tombstone it covers the digest of
what was removed; the rest is covered by the event that tells of the redaction. The chain cannot
reveal a tail that was cut off, an older copy, or a rewrite with all hashes recomputed: for those,
compare the ledger's head with one that was noted elsewhere.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from ledger.chain import (
    GENESIS,
    Head,
    LeafContent,
    is_tombstone,
    leaf_hash,
    link_hash,
    payload_digest,
)
from ledger.errors import CannotRead, UnreadableEvent
from ledger.events.values import EventRedacted, type_name
from ledger.identity import StreamId, digest_of_bytes
from ledger.reader import Columns
from ledger.recorded import DAMAGED_ROW, Recorded, decode_stored
from ledger.storage import schema
from ledger.store import Ledger

# Text is read as bytes: what was tampered with need not be UTF-8.
_ROWS: Final = (
    "SELECT position,"
    " event_id, CAST(stream AS BLOB), CAST(type AS BLOB), schema_version, recorded_us, data,"
    " version, leaf, chain"
    " FROM event WHERE position > ? AND position <= ?{} ORDER BY position LIMIT ?"
).format
_ALL: Final = _ROWS("")
_OF_TYPES: Final = _ROWS(" AND +type IN (SELECT value FROM json_each(?))")  # by no index
_BEFORE_ALL: Final = -(2**63)  # a sign that was flipped hides no event
_place: Final = attrgetter("position")


class Fault(NamedTuple):
    """Something wrong at a position."""

    position: int
    why: str


class Redaction(NamedTuple):
    """A redacted event, and the event that says so."""

    position: int
    type: str
    told_at: int  # position of the other
    why: str


class ChainAudit(NamedTuple):
    """What an audit of the chain found, both by position."""

    faults: tuple[Fault, ...]
    redactions: tuple[Redaction, ...]


class _Tombstone(NamedTuple):
    """What stands in the place of a redacted payload."""

    position: int
    type: str
    digest: str  # of the payload that it stands for
    content: str  # its own digest


def audit(ledger: Ledger) -> tuple[Fault, ...]:
    """Return every fault of the bytes, by position: broken hashes and unreadable events.

    Raises:
        CannotRead: A column is missing, so there is nothing to check.
    """
    require_columns(ledger)
    auditor = ChainAuditor(ledger, ledger.head)
    unreadable = [fault for page in auditor.pages() for fault in page if isinstance(fault, Fault)]
    faults = [*audit_file(ledger), *auditor.result().faults, *unreadable]
    return tuple(sorted(faults, key=_place))


def require_columns(ledger: Ledger) -> None:
    """Require what an event is read from; another program may have renamed a column.

    Raises:
        CannotRead: A column is missing, or the table.
    """
    ledger.select(_ALL, 0, 0, 0)


def audit_file(ledger: Ledger) -> Iterator[Fault]:
    """Yield what is wrong with the file itself, at position 0: pages, indexes and schema."""
    try:
        yield from (Fault(0, why) for why in schema.differences(ledger.select))
        # SQLite leaves out the free pages of a file with views, unless it is asked for its schema.
        checked = ("PRAGMA integrity_check", "PRAGMA integrity_check('sqlite_schema')")
        messages = (row for pragma in checked for row in ledger.select(pragma))
        for (message,) in dict.fromkeys(messages):
            if message != "ok":
                yield Fault(0, f"SQLite finds the file damaged: {' '.join(message.split())}")
    except CannotRead as error:
        yield Fault(0, error.why)


class ChainAuditor:
    """Reads each event once: audits the chain, and yields what can be read for other checks."""

    def __init__(self, ledger: Ledger, until: Head) -> None:
        """Take a ledger, and its head: events after it may still be arriving."""
        self._ledger, self._until = ledger, until.position
        self._position, self._link = 0, GENESIS
        self._versions: defaultdict[bytes, int] = defaultdict(int)  # by stream
        self._faults: list[Fault] = []
        self._tombstones: dict[str, _Tombstone] = {}  # by event id
        self._told: list[tuple[int, EventRedacted]] = []  # with their positions

    def pages(self) -> Iterator[list[Recorded | Fault]]:
        """Yield all events in order; a fault in place of each that cannot be read."""
        try:
            for page in self._ledger.pages(_ALL, _BEFORE_ALL, self._until):
                for row in page:
                    self._audit(row)
                queries = [_recorded_or_fault(row) for row in page]
                self._told += _redactions_in(queries)
                yield queries
        except CannotRead as error:
            why = f"something behind it cannot be read: {error.why}"
            self._faults.append(Fault(self._position, why))

    def result(self) -> ChainAudit:
        """Return what was found, once all pages were read."""
        matched = [*self._matched_redactions()]
        faults = [*self._faults, *(fault for fault in matched if isinstance(fault, Fault))]
        redactions = [redaction for redaction in matched if isinstance(redaction, Redaction)]
        return ChainAudit(tuple(sorted(faults, key=_place)), tuple(sorted(redactions, key=_place)))

    def _audit(self, row: Columns) -> None:
        """Compare a row with the one before it."""
        at, stream, (version, link) = row[0], row[2], (row[7], row[9])
        try:
            self._faults += [Fault(at, why) for why in self._whys(row)]
            if is_tombstone(row[6]):
                entry = LeafContent._make(row[1:7])
                self._tombstones[entry.event_id.hex()] = _tombstone_of(at, entry)
        except (AttributeError, TypeError):
            self._faults.append(Fault(at, DAMAGED_ROW))
        self._position, self._link, self._versions[stream] = at, link, version

    def _whys(self, row: Columns) -> list[str]:
        """Describe what is wrong with a row, given what is expected after the one before it."""
        at, entry, (version, leaf, link) = row[0], LeafContent._make(row[1:7]), row[7:10]
        expected = self._versions[entry.stream] + 1
        whys = []
        if at != self._position + 1:
            whys.append(f"position {self._position + 1} is missing before it")
        if version != expected:
            stream = entry.stream.decode(errors="replace")
            whys.append(f"it is version {version} of stream {stream!r}, expected {expected}")
        if leaf != leaf_hash(entry):
            whys.append("its content is not what was recorded")
        if link != link_hash(self._link, leaf):
            whys.append("its link to the event before it is broken")
        return whys

    def _matched_redactions(self) -> Iterator[Redaction | Fault]:
        """Match tombstones with the events that tell of them, which may be arriving just now."""
        untold = dict(self._tombstones)
        later = read_some(self._ledger, {type_name(EventRedacted)}, after=self._until)
        for at, event in (*self._told, *_redactions_in(later)):
            found = untold.pop(event.event_id, None)
            if found is not None:
                yield _matched(found, event, at)
            elif at <= self._until:
                yield Fault(at, f"no event {event.event_id} before it is redacted")
        for tombstone in untold.values():
            yield Fault(tombstone.position, "its texts were removed, and no event says so")


def _tombstone_of(position: int, entry: LeafContent) -> _Tombstone:
    return _Tombstone(
        position,
        entry.type.decode(errors="replace"),
        payload_digest(entry.data).hex(),
        digest_of_bytes(entry.data),
    )


def _matched(tombstone: _Tombstone, event: EventRedacted, at: int) -> Redaction | Fault:
    is_as_left = (tombstone.digest, tombstone.content) == (event.digest, event.tombstone)
    if is_as_left and tombstone.position < at:
        return Redaction(tombstone.position, tombstone.type, at, event.why)
    return Fault(tombstone.position, f"it is not as the redaction at position {at} left it")


def read_some(ledger: Ledger, types: Collection[str], *, after: int = 0) -> Iterator[Recorded]:
    """Yield the events of some types that can be read, whatever an index leads to."""
    chosen = msgspec.json.encode(sorted(types)).decode()
    try:
        for page in ledger.pages(_OF_TYPES, after, ledger.head.position, chosen):
            events = map(_recorded_or_fault, page)
            yield from (recorded for recorded in events if isinstance(recorded, Recorded))
    except CannotRead:
        return


def _redactions_in(events: Iterable[Recorded | Fault]) -> Iterator[tuple[int, EventRedacted]]:
    for recorded in events:
        if isinstance(recorded, Recorded) and isinstance(recorded.event, EventRedacted):
            yield recorded.position, recorded.event


def _recorded_or_fault(row: Columns) -> Recorded | Fault:
    position, _, stream, type_, schema_version, recorded_us, data, version, _, link = row
    try:
        stream, type_ = StreamId(stream.decode()), type_.decode()
        event = decode_stored(position, recorded_us, type_, schema_version, data)
    except AttributeError:
        return Fault(position, DAMAGED_ROW)
    except UnicodeDecodeError:
        return Fault(position, "its stream or type is not UTF-8 text")
    except UnreadableEvent as error:
        return Fault(position, error.why)
    return Recorded(position, stream, version, recorded_us, link, event, is_tombstone(data))
