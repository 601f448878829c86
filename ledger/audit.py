"""Audit of a ledger's bytes: is what lies there what was recorded, in order, nothing missing?

The chain finds a change of recorded bytes, a gap and a swap. It cannot find a tail cut off or
an older copy put back: for that compare the head with one noted elsewhere.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ledger.chain import GENESIS, leaf_hash, link_hash
from ledger.errors import UnreadableEvent
from ledger.row import Row


class Fault(NamedTuple):
    """Something at a position that is not as it was recorded."""

    position: int
    why: str


def audit(rows: Iterable[Row]) -> Iterator[Fault]:
    """Yield every fault of a whole ledger, by position; it stops at none."""
    previous, expected_position = GENESIS, 1
    versions: Counter[str] = Counter()
    for row in rows:
        if row.position != expected_position:
            yield Fault(row.position, f"position {expected_position} is missing before it")
        yield from _faults_of(row, previous, versions[row.stream] + 1)
        expected_position = row.position + 1
        versions[row.stream] = row.version
        previous = row.chain


def _faults_of(row: Row, previous: bytes, expected_version: int) -> Iterator[Fault]:
    if row.version != expected_version:
        yield Fault(
            row.position,
            f"it is version {row.version} of stream {row.stream!r}, expected {expected_version}",
        )
    if leaf_hash(row.entry) != row.leaf:
        yield Fault(row.position, "its content is not what was recorded")
    if link_hash(previous, row.leaf) != row.chain:
        yield Fault(row.position, "its link to the event before it is broken")
    try:
        row.recorded()
    except UnreadableEvent as error:
        yield Fault(row.position, error.why)
