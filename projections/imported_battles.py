"""The battles that were imported: which there are, and which of them count."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger.events.imports import BattlesImported, set_of
from ledger.identity import Digest
from ledger.recorded import Recorded
from projections.fold import Projection


class Chunk(NamedTuple):
    """Battles of one file, and the set that they are in."""

    name: str
    event: BattlesImported


@dataclass(frozen=True)
class ImportedBattles:
    """What was imported, in order."""

    chunks: tuple[Chunk, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The sets of battles, in the order in which they began."""
        return tuple(dict.fromkeys(chunk.name for chunk in self.chunks))

    def of(self, names: Collection[str]) -> "ImportedBattles":
        """Return the battles of some sets alone."""
        return ImportedBattles(tuple(chunk for chunk in self.chunks if chunk.name in names))

    @property
    def events(self) -> Sequence[BattlesImported]:
        """The battles that count: of a file, those by its last reading alone.

        A file may have been read anew by a mapping that was put right, or into another set.
        """
        readings: dict[Digest, tuple[str, ...]] = {}
        for name, event in self.chunks:
            readings[event.file_digest] = _reading(name, event)
        return tuple(
            event
            for name, event in self.chunks
            if readings[event.file_digest] == _reading(name, event)
        )


def _reading(name: str, event: BattlesImported) -> tuple[str, ...]:
    _, mapping, _ = event.natural_key
    return (name, mapping)


def advance(state: ImportedBattles, events: Iterable[Recorded]) -> ImportedBattles:
    """Return what is known after more events, in order."""
    chunks = (
        Chunk(set_of(recorded.stream) or recorded.stream, recorded.event)
        for recorded in events
        if isinstance(recorded.event, BattlesImported)
    )
    return ImportedBattles((*state.chunks, *chunks))


IMPORTED_BATTLES: Final = Projection(initial=ImportedBattles(), advance=advance)
