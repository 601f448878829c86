"""Whether a file of battles is one that was imported before, grown, cut or corrected since.

A file is named by its digest, so as it is now it is another one, and what both hold would count
twice, for good.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ledger.events.battles import MAX_BATTLES, SIGNS, BattlesImported
from ledger.identity import Digest

_NEARLY_ALL: Final = 0.9  # of the smaller file: people who vote on the same agree on less


class Overlap(NamedTuple):
    """What two files have in common, word for word."""

    n_shared: int
    n_before: int  # battles of the earlier file


def overlap(found: Counter[int], before: Iterable[BattlesImported]) -> Overlap | None:
    """Return what a file shares with the first that holds nearly all of it, or that it holds.

    Args:
        found: The file's battles by their marks.
        before: Those of other files, in the same set.
    """
    files: defaultdict[Digest, Counter[int]] = defaultdict(Counter)
    for event in before:
        files[event.file_digest].update(marks(event))
    for earlier in files.values():
        n_shared = (earlier & found).total()
        if n_shared >= _NEARLY_ALL * min(earlier.total(), found.total()):
            return Overlap(n_shared, earlier.total())
    return None


def marks(event: BattlesImported) -> Iterator[int]:
    """Yield for each battle the hash of all that is said of it.

    Without a prompt's id that is little, and tables of the same entrants would seem copies of one
    another; so there the battle's place in the file belongs to it.
    """
    n, entrants = event.n_battles, dict(zip(SIGNS, event.entrants, strict=False))
    start = MAX_BATTLES * (event.chunk - 1)
    prompts = event.prompts.cells(n)
    yield from map(
        hash,
        zip(
            map(entrants.__getitem__, event.a),
            map(entrants.__getitem__, event.b),
            event.winners.cells(n),
            event.prefs.cells(n),
            prompts,
            (place if prompt is None else None for place, prompt in enumerate(prompts, start)),
            event.sources.cells(n),
            event.judges.cells(n),
            event.weights.cells(n),
            strict=True,
        ),
    )
