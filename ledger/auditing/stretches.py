"""Audit the chain in stretches, which several processes share; others may listen meanwhile.

So every event is read once: who checks what it means hears its row right after it was hashed.
"""

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from ledger.chain import (
    GENESIS,
    Head,
    LeafContent,
    is_tombstone,
    leaf_hash,
    link_hash,
    payload_digest,
)
from ledger.errors import CannotRead
from ledger.identity import digest_of_bytes
from ledger.reader import Columns
from ledger.storage.tail import StreamVersions, key_of, lost_keys
from ledger.store import Ledger

_SHORT: Final = 20_000  # events: to share out fewer costs more than it gains
_SHARES_A_CORE: Final = 4  # some stretches take longer than others
# Text is read as bytes: what was tampered with need not be UTF-8.
ROWS: Final = (
    "SELECT position,"
    " event_id, CAST(stream AS BLOB), CAST(type AS BLOB), schema_version, recorded_us, data,"
    " version, leaf, chain"
    " FROM event WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
)
_BEFORE: Final = (
    "SELECT position, chain FROM event WHERE position <= ? ORDER BY position DESC LIMIT 1"
)
Heard_co = TypeVar("Heard_co", covariant=True)


class Fault(NamedTuple):
    """Something wrong at a position."""

    position: int
    why: str


class Tombstone(NamedTuple):
    """What stands in the place of a redacted payload."""

    position: int
    event_id: str
    type: str
    digest: str  # of the payload that it stands for
    content: str  # its own digest


class Listener(Protocol[Heard_co]):
    """Hears the rows of a stretch in order, whatever is wrong with them."""

    def hear(self, row: Columns) -> None:
        """Hear a row, as `ROWS` selects it."""

    def end(self) -> Heard_co:
        """Return what was heard; another process may have listened."""


class Deaf:
    """Who does not listen."""

    def hear(self, row: Columns) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Return nothing."""


class Stretch(NamedTuple, Generic[Heard_co]):
    """The events after a position up to another, audited."""

    after: int
    last: int
    found: list[Fault | Tombstone]
    heard: Heard_co | None  # None: some rows cannot be read


def audited_stretches(
    ledger: Ledger, until: Head, listen: Callable[[], Listener[Heard_co]]
) -> Iterator[Stretch[Heard_co]]:
    """Yield all stretches of a chain up to a head; of a long one, from several processes.

    Args:
        ledger: Open, for reading or writing.
        until: Its head: events after it may still be arriving.
        listen: Begins to listen to a stretch.
    """
    last = until.position
    [(n_events,)] = ledger.select("SELECT count(*) FROM event WHERE position <= ?", last)
    if n_events <= _SHORT or n_events != last or not ledger.path.exists():
        yield _audited(ledger, 0, last, listen)
        return
    n_cores = os.cpu_count() or 1
    length = max(_SHORT, last // (_SHARES_A_CORE * n_cores) + 1)
    edges = pairwise([*range(0, last, length), last])
    # Without collecting garbage: they leave none, and hold much that would be gone through.
    with ProcessPoolExecutor(n_cores, get_context("spawn"), gc.disable) as pool:
        after, ends = zip(*edges, strict=True)
        yield from pool.map(_audited_apart, repeat(ledger.path), after, ends, repeat(listen))


def _audited_apart(
    path: Path, after: int, last: int, listen: Callable[[], Listener[Heard_co]]
) -> Stretch[Heard_co]:
    with Ledger.read_only(path) as ledger:
        return _audited(ledger, after, last, listen)


def _audited(
    ledger: Ledger, after: int, last: int, listen: Callable[[], Listener[Heard_co]]
) -> Stretch[Heard_co]:
    """Audit a range of events, up to where the file becomes unreadable."""
    found: list[Fault | Tombstone] = []
    listener = listen()
    try:
        keys = bytearray()
        found.extend(_faults_in_stretch(ledger, after, last, keys, listener.hear))
        lost = lost_keys(ledger.select, after, last, keys, ledger.head.position)
        found.extend(Fault(each, "the table of keys does not lead to it") for each in lost)
    except CannotRead as error:
        found.append(Fault(after, f"something behind it cannot be read: {error.why}"))
        return Stretch(after, last, found, None)
    return Stretch(after, last, found, listener.end())


def _faults_in_stretch(
    ledger: Ledger, after: int, last: int, keys: bytearray, hear: Callable[[Columns], None]
) -> Iterator[Fault | Tombstone]:
    """Yield the faults and tombstones of a range of events, trusting the row before it.

    Its keys are added to those given.
    """
    before = ledger.select(_BEFORE, after)
    [(position, previous)] = before or [(0, GENESIS)]
    versions = StreamVersions(ledger.select, after)
    for page in ledger.pages(ROWS, after, last):
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
            hear(row)
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
