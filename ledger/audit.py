"""Audit a ledger's bytes: is every event there, in order and unchanged?

The hash chain reveals changed, missing and swapped events. Of a tombstone it covers the digest of
what was removed; the rest is covered by the event that tells of the redaction. The chain cannot
reveal a tail that was cut off, an older copy, or a rewrite with all hashes recomputed: for those,
compare the ledger's head with one that was noted elsewhere.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise, repeat
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

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
from ledger.events.redaction import EventRedacted
from ledger.events.values import type_name
from ledger.identity import StreamId, digest_of_bytes
from ledger.reader import Columns
from ledger.recorded import Recorded, decode_stored
from ledger.storage import schema
from ledger.storage.tail import StreamVersions, faults_in_number_of_keys, key_of, lost_keys
from ledger.store import Ledger

_SHORT: Final = 20_000  # events: to share out fewer costs more than it gains
_SHARES_A_CORE: Final = 4  # some stretches take longer than others
# Text is read as bytes: what was tampered with need not be UTF-8.
_ROWS: Final = (
    "SELECT position,"
    " event_id, CAST(stream AS BLOB), CAST(type AS BLOB), schema_version, recorded_us, data,"
    " version, leaf, chain"
    " FROM event WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
)
_BEFORE: Final = (
    "SELECT position, chain FROM event WHERE position <= ? ORDER BY position DESC LIMIT 1"
)


class Fault(NamedTuple):
    """Something wrong at a position."""

    position: int
    why: str


_place: Final = attrgetter("position")


class Tombstone(NamedTuple):
    """What stands in the place of a redacted payload."""

    position: int
    event_id: str
    type: str
    digest: str  # of the payload that it stands for
    content: str  # its own digest


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
    ledger.select(_ROWS, 0, 0, 0)


def audit_file(ledger: Ledger) -> Iterator[Fault]:
    """Yield what is wrong with the file itself, at position 0: pages, schema, number of keys."""
    try:
        altered = list(schema.differences(ledger.select(schema.CONTENTS)))
        yield from (Fault(0, why) for why in altered)
        # SQLite leaves out the free pages of a file with views, unless it is asked for its schema.
        checked = ("PRAGMA integrity_check", "PRAGMA integrity_check('sqlite_schema')")
        found = (row for each in checked for row in ledger.select(each))
        for (message,) in dict.fromkeys(found):
            if message != "ok":
                yield Fault(0, f"SQLite finds the file damaged: {message}")
        if not altered:
            yield from (Fault(0, why) for why in faults_in_number_of_keys(ledger.select))
    except CannotRead as error:
        yield Fault(0, error.why)


def audit_chain(ledger: Ledger, until: Head, *, n_spared: int = 0) -> ChainAudit:
    """Return every fault of position, version, content and link, and every redaction.

    A long ledger is audited by several processes.

    Args:
        ledger: Open, for reading or writing.
        until: Its head: events after it may still be arriving.
        n_spared: Cores to leave free; one is always used.
    """
    found = _audit_shares(ledger, until, n_spared)
    tombstones = [each for each in found if isinstance(each, Tombstone)]
    matched = [*_matched_redactions(ledger, tombstones, until.position)]
    faults = [each for each in (*found, *matched) if isinstance(each, Fault)]
    redactions = [each for each in matched if isinstance(each, Redaction)]
    return ChainAudit(tuple(sorted(faults, key=_place)), tuple(sorted(redactions, key=_place)))


def _audit_shares(ledger: Ledger, until: Head, n_spared: int) -> Sequence[Fault | Tombstone]:
    """Audit the chain in one process, or in several; return faults and tombstones."""
    [(n_events,)] = ledger.select("SELECT count(*) FROM event WHERE position <= ?", until.position)
    if n_events <= _SHORT or n_events != until.position or not ledger.path.exists():
        return _found_in_stretch(ledger, 0, until.position)
    n_cores = max(1, (os.cpu_count() or 1) - n_spared)
    with ProcessPoolExecutor(n_cores, get_context("spawn")) as pool:
        found: list[Fault | Tombstone] = []
        paths = repeat(ledger.path)
        length = max(_SHORT, until.position // (_SHARES_A_CORE * n_cores) + 1)
        edges = [*range(0, until.position, length), until.position]
        after, last = zip(*pairwise(edges), strict=True)
        for each in pool.map(_audit_apart, paths, after, last):
            found.extend(each)
    return found


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
    ledger: Ledger, until: int, types: Collection[str] | None = None
) -> Iterator[Recorded | Fault]:
    """Yield every event, or all of some types; a fault in place of each unreadable one."""
    position = 0
    while position < until:
        try:
            for recorded in ledger.read(after=position, until=until, types=types):
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
        for page in ledger.pages(_ROWS, after, last):
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


def _audit_apart(path: Path, after: int, last: int) -> list[Fault | Tombstone]:
    with Ledger.read_only(path) as ledger:
        return _found_in_stretch(ledger, after, last)


def _found_in_stretch(ledger: Ledger, after: int, last: int) -> list[Fault | Tombstone]:
    """Return what is found in a range of events, and where the file becomes unreadable."""
    found: list[Fault | Tombstone] = []
    try:
        keys = bytearray()
        found.extend(_audit_stretch(ledger, after, last, keys))
        lost = lost_keys(ledger.select, after, last, keys, ledger.head.position)
        found.extend(Fault(each, "the table of keys does not lead to it") for each in lost)
    except CannotRead as error:
        found.append(Fault(after, f"something behind it cannot be read: {error.why}"))
    return found


def _audit_stretch(
    ledger: Ledger, after: int, last: int, keys: bytearray
) -> Iterator[Fault | Tombstone]:
    """Yield the faults and tombstones of a range of events, trusting the row before it.

    Its keys are added to those given.
    """
    before = ledger.select(_BEFORE, after)
    [(position, previous)] = before or [(0, GENESIS)]
    versions = StreamVersions(ledger.select, after)
    for page in ledger.pages(_ROWS, after, last):
        for row in page:
            at, entry, (version, leaf, chain) = row[0], row[1:7], row[7:]
            stream = entry[1]
            try:
                if (
                    at != position + 1
                    or version != versions[stream] + 1
                    or leaf != leaf_hash(entry)
                    or chain != link_hash(previous, leaf)
                ):
                    yield from _faults_of(row, position + 1, versions[stream] + 1, previous)
                keys += key_of(entry[0])
                if is_tombstone(entry[-1]):
                    yield _tombstone_of(at, LeafContent._make(entry))
            except (AttributeError, TypeError):
                yield Fault(at, "its row is damaged: a field is missing or has the wrong type")
            position, previous, versions[stream] = at, chain, version


def _tombstone_of(position: int, entry: LeafContent) -> Tombstone:
    return Tombstone(
        position,
        entry.event_id.hex(),
        entry.type.decode(errors="replace"),
        payload_digest(entry.data).hex(),
        digest_of_bytes(entry.data),
    )


def _faults_of(row: Columns, position: int, version: int, previous: bytes) -> Iterator[Fault]:
    """Describe what is wrong with a row, given the expected values."""
    at, entry, (found, leaf, chain) = row[0], LeafContent._make(row[1:7]), row[7:]
    if at != position:
        yield Fault(at, f"position {position} is missing before it")
    if found != version:
        stream = entry.stream.decode(errors="replace")
        yield Fault(at, f"it is version {found} of stream {stream!r}, expected {version}")
    if leaf != leaf_hash(entry):
        yield Fault(at, "its content is not what was recorded")
    if chain != link_hash(previous, leaf):
        yield Fault(at, "its link to the event before it is broken")
