"""Whether a file of battles is another that was imported, grown or cut since.

A file is named by its digest, so as it is now it is another one, and what both hold would count
twice, for good.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ledger.events.imports import SIGNS, BattlesImported
from ledger.identity import Digest

_TELLING: Final = 8  # battles that differ; where fewer do, files are alike by chance
_N_BYTES: Final = 8  # of a hash


def size_of_same(found: bytes, before: Iterable[BattlesImported]) -> int | None:
    """Return how many battles the first file has that holds another's in a piece, or is held.

    In a piece and in order: people who vote on the same prompts agree on much, but not so.

    Args:
        found: The file's battles, by their hashes.
        before: Those of other files, in the same set.
    """
    files: defaultdict[Digest, list[bytes]] = defaultdict(list)
    for event in before:
        files[event.file_digest].append(hashes(event))
    for earlier in map(b"".join, files.values()):
        fewer, more = (earlier, found) if len(earlier) < len(found) else (found, earlier)
        if len(set(memoryview(fewer).cast("q"))) >= _TELLING and is_within(fewer, more):
            return len(earlier) // _N_BYTES
    return None


def hashes(event: BattlesImported) -> bytes:
    """Return the hash of all that is said of each battle, one behind the other."""
    n, entrants = event.n_battles, dict(zip(SIGNS, event.entrants, strict=False))
    battles = zip(
        map(entrants.__getitem__, event.a),
        map(entrants.__getitem__, event.b),
        event.winners.cells(n),
        event.prefs.cells(n),
        event.prompts.cells(n),
        event.sources.cells(n),
        event.judges.cells(n),
        event.weights.cells(n),
        strict=True,
    )
    return array("q", map(hash, battles)).tobytes()


def is_within(fewer: bytes, more: bytes) -> bool:
    """Say whether all hashes of one file stand in another's, in a piece."""
    place = more.find(fewer)
    while place > 0 and place % _N_BYTES:  # in the middle of a hash
        place = more.find(fewer, place + 1)
    return place >= 0
