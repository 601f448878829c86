"""Audit a ledger's bytes: is every event there, in order and unchanged?

The hash chain reveals changed, missing and swapped events. Of a tombstone it covers the digest of
what was removed; the rest is covered by the event that tells of the redaction. The chain cannot
reveal a tail that was cut off, an older copy, or a rewrite with all hashes recomputed: for those,
compare the ledger's head with one that was noted elsewhere.
"""

from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from ledger.auditing.ranges import ROWS, Fault, NoFurtherCheck, Tombstone, audited_ranges
from ledger.chain import Head
from ledger.errors import CannotRead, UnreadableEvent
from ledger.events.redaction import EventRedacted
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.reader import Columns
from ledger.recorded import Recorded, decode_stored
from ledger.storage import schema
from ledger.store import Ledger

_place: Final = attrgetter("position")


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


def audit(ledger: Ledger) -> tuple[Fault, ...]:
    """Return every fault of the bytes, by position: broken hashes and unreadable events.

    Raises:
        CannotRead: A column is missing, so there is nothing to check.
    """
    require_columns(ledger)
    until = ledger.head
    unreadable = (
        each for each in read_with_faults(ledger, until.position) if isinstance(each, Fault)
    )
    faults = [*audit_file(ledger), *audit_chain(ledger, until).faults, *unreadable]
    return tuple(sorted(faults, key=_place))


def require_columns(ledger: Ledger) -> None:
    """Require what an event is read from; another program may have renamed a column.

    Raises:
        CannotRead: A column is missing, or the table.
    """
    ledger.select(ROWS, 0, 0, 0)


def audit_file(ledger: Ledger) -> Iterator[Fault]:
    """Yield what is wrong with the file itself, at position 0: pages and schema."""
    try:
        yield from (Fault(0, why) for why in schema.differences(ledger.select))
        # SQLite leaves out the free pages of a file with views, unless it is asked for its schema.
        checked = ("PRAGMA integrity_check", "PRAGMA integrity_check('sqlite_schema')")
        found = (row for each in checked for row in ledger.select(each))
        for (message,) in dict.fromkeys(found):
            if message != "ok":
                yield Fault(0, f"SQLite finds the file damaged: {' '.join(message.split())}")
    except CannotRead as error:
        yield Fault(0, error.why)


def audit_chain(ledger: Ledger, until: Head) -> ChainAudit:
    """Return every fault of position, version, content and link, and every redaction.

    Args:
        ledger: Open, for reading or writing.
        until: Its head: events after it may still be arriving.
    """
    ranges = audited_ranges(ledger, until, NoFurtherCheck)
    return joined(ledger, until, [found for each in ranges for found in each.found])


def joined(ledger: Ledger, until: Head, found: Iterable[Fault | Tombstone]) -> ChainAudit:
    """Return what was found in all ranges of a chain; tombstones are matched with their events.

    Args:
        ledger: As the ranges.
        until: The head up to which they were audited.
        found: In any order.
    """
    found = [*found]
    tombstones = [each for each in found if isinstance(each, Tombstone)]
    matched = [*_matched_redactions(ledger, tombstones, until.position)]
    faults = [each for each in (*found, *matched) if isinstance(each, Fault)]
    redactions = [each for each in matched if isinstance(each, Redaction)]
    return ChainAudit(tuple(sorted(faults, key=_place)), tuple(sorted(redactions, key=_place)))


def _matched_redactions(
    ledger: Ledger, tombstones: Iterable[Tombstone], until: int
) -> Iterator[Redaction | Fault]:
    """Match tombstones with the events that tell of them, which may come after the position."""
    untold = {each.event_id: each for each in tombstones}
    for recorded in read_with_faults(ledger, ledger.head.position, {type_name(EventRedacted)}):
        if isinstance(recorded, Recorded) and isinstance(recorded.event, EventRedacted):
            event, at = recorded.event, recorded.position
            found = untold.pop(event.event_id, None)
            if found is None and at <= until:
                yield Fault(at, f"no event {event.event_id} before it is redacted")
            elif found is not None:
                yield _matched(found, event, at)
    for each in untold.values():
        yield Fault(each.position, "its texts were removed, and no event says so")


def _matched(found: Tombstone, event: EventRedacted, at: int) -> Redaction | Fault:
    if (found.digest, found.content) == (event.digest, event.tombstone) and found.position < at:
        return Redaction(found.position, found.type, at, event.why)
    return Fault(found.position, f"it is not as the redaction at position {at} left it")


def read_with_faults(
    ledger: Ledger, until: int, types: Collection[str] | None = None, *, after: int = 0
) -> Iterator[Recorded | Fault]:
    """Yield every event, or all of some rare types; a fault in place of each unreadable one."""
    position = after
    while position < until:
        try:
            for recorded in ledger.read(after=position or None, until=until, types=types):
                position = recorded.position
                yield recorded
        except UnreadableEvent as error:
            position = error.position
            yield Fault(position, error.why)
        except CannotRead:
            break
        else:
            return
    for each in _read_each_slowly(ledger, position, until):
        if types is None or isinstance(each, Fault) or type_name(each.event) in types:
            yield each


def _read_each_slowly(ledger: Ledger, after: int, last: int) -> Iterator[Recorded | Fault]:
    """Read on, decoding text from bytes, after a page could not be read as text."""
    try:
        for page in ledger.pages(ROWS, after, last):
            yield from map(_recorded_or_fault, page)
    except CannotRead as error:
        yield Fault(after, f"something behind it cannot be read: {error.why}")


def _recorded_or_fault(row: Columns) -> Recorded | Fault:
    position, _, stream, type_, schema_version, recorded_us, data, version, _, chain = row
    try:
        stream, type_ = StreamId(stream.decode()), type_.decode()
        event = decode_stored(position, recorded_us, type_, schema_version, data)
    except UnicodeDecodeError:
        return Fault(position, "its stream or type is not UTF-8 text")
    except UnreadableEvent as error:
        return Fault(position, error.why)
    return Recorded(position, stream, version, recorded_us, chain, event)
