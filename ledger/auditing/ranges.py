"""Audit the hash chain in ranges of positions, which several processes share.

Each page of rows is read once: it is hashed, then given to whoever checks what its events mean.
"""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from ledger.auditing.tables import StreamVersions
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
from ledger.recorded import DAMAGED_ROW
from ledger.store import Ledger

_SHORT: Final = 20_000  # events: to share out fewer costs more than it gains
_RANGES_A_CORE: Final = 16  # some take longer than others, and the last ones end alone
# Text is read as bytes: what was tampered with need not be UTF-8.
ROWS: Final = (
    "SELECT position,"
    " event_id, CAST(stream AS BLOB), CAST(type AS BLOB), schema_version, recorded_us, data,"
    " version, leaf, chain"
    " FROM event WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
)
_LINK: Final = 9  # its column of those
_BEFORE: Final = (
    "SELECT position, chain FROM event WHERE position <= ? ORDER BY position DESC LIMIT 1"
)
Result_co = TypeVar("Result_co", covariant=True)


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


class RowCheck(Protocol[Result_co]):
    """A further check of the rows of a range."""

    def add(self, page: Sequence[Columns]) -> None:
        """Check more rows, as `ROWS` selects them, in order; the chain may be broken there."""

    def result(self) -> Result_co:
        """Return what was found; another process may have checked."""


class NoFurtherCheck:
    """The chain alone is audited."""

    def add(self, page: Sequence[Columns]) -> None:
        """Do nothing."""

    def result(self) -> None:
        """Return nothing."""


class AuditedRange(NamedTuple, Generic[Result_co]):
    """The events after a position up to another, audited."""

    after: int
    last: int
    found: list[Fault | Tombstone]
    result: Result_co | None  # of the further check; None: some rows cannot be read


def audited_ranges(
    ledger: Ledger, until: Head, begin: Callable[[], RowCheck[Result_co]]
) -> Iterator[AuditedRange[Result_co]]:
    """Yield all ranges of a chain up to a head; of a long one, from several processes.

    Args:
        ledger: Open, for reading or writing.
        until: Its head: events after it may still be arriving.
        begin: Begins the further check of a range.
    """
    last = until.position
    if last <= _SHORT or not ledger.path.exists():
        yield _audited(ledger, 0, last, begin)
        return
    n_cores = os.cpu_count() or 1
    length = max(_SHORT, last // (_RANGES_A_CORE * n_cores) + 1)
    edges = pairwise([*range(0, last, length), last])
    # Without collecting garbage: they leave none, and hold much that would be gone through.
    with ProcessPoolExecutor(n_cores, get_context("spawn"), gc.disable) as pool:
        after, ends = zip(*edges, strict=True)
        yield from pool.map(_audited_apart, repeat(ledger.path), after, ends, repeat(begin))


def _audited_apart(
    path: Path, after: int, last: int, begin: Callable[[], RowCheck[Result_co]]
) -> AuditedRange[Result_co]:
    with Ledger.read_only(path) as ledger:
        return _audited(ledger, after, last, begin)


def _audited(
    ledger: Ledger, after: int, last: int, begin: Callable[[], RowCheck[Result_co]]
) -> AuditedRange[Result_co]:
    """Audit a range of events, up to where the file becomes unreadable."""
    found: list[Fault | Tombstone] = []
    check = begin()
    try:
        found.extend(_faults_in_range(ledger, after, last, check.add))
    except CannotRead as error:
        return AuditedRange(after, last, [*found, _unreadable(after, error)], None)
    return AuditedRange(after, last, found, check.result())


def _unreadable(after: int, error: CannotRead) -> Fault:
    return Fault(after, f"something behind it cannot be read: {error.why}")


def _faults_in_range(
    ledger: Ledger,
    after: int,
    last: int,
    check: Callable[[Sequence[Columns]], None],
) -> Iterator[Fault | Tombstone]:
    """Yield the faults and tombstones of a range of events, trusting the row before it.

    Each page is given to the check.
    """
    before = ledger.select(_BEFORE, after)
    [(position, previous)] = before or [(0, GENESIS)]
    versions = StreamVersions(ledger.select, after)
    for page in ledger.pages(ROWS, after, last):
        if not _is_sound(page, position, previous, versions):
            yield from _faults_in_page(page, position, previous, versions)
        check(page)
        position, previous = page[-1][0], page[-1][_LINK]


def _is_sound(
    page: Sequence[Columns], position: int, previous: bytes, versions: StreamVersions
) -> bool:
    """Say whether a page continues the chain and has no tombstone; by columns, which is fast.

    If so, the versions become those after it.
    """
    positions, _, streams, _, _, _, payloads, found, leaves, links = zip(*page, strict=True)
    after = dict[bytes, int]()
    try:
        for stream, version in zip(streams, found, strict=True):
            if version != after.get(stream, versions[stream]) + 1:
                return False
            after[stream] = version
        is_sound = (
            positions == tuple(range(position + 1, position + 1 + len(page)))
            and leaves == tuple([leaf_hash(row[1:7]) for row in page])
            and links == tuple(map(link_hash, (previous, *links), leaves))
            and not any(map(is_tombstone, payloads))
        )
    except (AttributeError, TypeError):  # a field is missing or has the wrong type
        return False
    if is_sound:
        versions.update(after)
    return is_sound


def _faults_in_page(
    page: Sequence[Columns],
    position: int,
    previous: bytes,
    versions: StreamVersions,
) -> Iterator[Fault | Tombstone]:
    """Yield the faults and tombstones of a page, row by row."""
    for row in page:
        at, entry, (version, leaf, chain) = row[0], row[1:7], row[7:10]
        stream = entry[1]
        try:
            if (
                at != position + 1
                or version != versions[stream] + 1
                or leaf != leaf_hash(entry)
                or chain != link_hash(previous, leaf)
            ):
                yield from _faults_of(row, position + 1, versions[stream] + 1, previous)
            if is_tombstone(entry[-1]):
                yield _tombstone_of(at, LeafContent._make(entry))
        except (AttributeError, TypeError):
            yield Fault(at, DAMAGED_ROW)
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
    at, entry, (found, leaf, chain) = row[0], LeafContent._make(row[1:7]), row[7:10]
    if at != position:
        yield Fault(at, f"position {position} is missing before it")
    if found != version:
        stream = entry.stream.decode(errors="replace")
        yield Fault(at, f"it is version {found} of stream {stream!r}, expected {version}")
    if leaf != leaf_hash(entry):
        yield Fault(at, "its content is not what was recorded")
    if chain != link_hash(previous, leaf):
        yield Fault(at, "its link to the event before it is broken")
