"""Imported battles and ratings by the name of their set, and what each set contains."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from ledger.events.imports import BattlesImported, RatingsImported, Winner, set_of
from ledger.identity import Digest
from ledger.recorded import Recorded
from projections.fold import Projection, fold


class Chunk(NamedTuple):
    """Battles of one file, and the name of their set."""

    name: str
    event: BattlesImported


@dataclass(frozen=True)
class ImportedBattles:
    """All imported battles, in order."""

    chunks: tuple[Chunk, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sets, in order of their first import."""
        return tuple(dict.fromkeys(chunk.name for chunk in self.chunks))

    def of(self, names: Collection[str]) -> "ImportedBattles":
        """Select the battles of some sets."""
        return ImportedBattles(tuple(chunk for chunk in self.chunks if chunk.name in names))

    @property
    def events(self) -> Sequence[BattlesImported]:
        """The battles that count: of each file, its last import only.

        A file may have been imported again by a corrected mapping, or into another set.
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


def add_battles(state: ImportedBattles, events: Iterable[Recorded]) -> ImportedBattles:
    """Add imported battles, in order."""
    chunks = (
        Chunk(set_of(recorded.stream) or recorded.stream, recorded.event)
        for recorded in events
        if isinstance(recorded.event, BattlesImported)
    )
    return ImportedBattles((*state.chunks, *chunks))


IMPORTED_BATTLES: Final = Projection(initial=ImportedBattles(), advance=add_battles)

ImportedRatings: TypeAlias = Map[str, RatingsImported]
"""The newest imported ratings of each set, by its name."""


def add_ratings(state: ImportedRatings, events: Iterable[Recorded]) -> ImportedRatings:
    """Add imported ratings, in order."""
    newest = {
        set_of(recorded.stream) or recorded.stream: recorded.event
        for recorded in events
        if isinstance(recorded.event, RatingsImported)
    }
    return state.update(newest)


IMPORTED_RATINGS: Final[Projection[ImportedRatings]] = Projection(
    initial=Map(), advance=add_ratings
)

IMPORTED_EVENTS: Final = frozenset({"BattlesImported", "RatingsImported"})


class ImportedSet(NamedTuple):
    """Counts of a set; of a file that was imported twice, the last import only."""

    winners: Counter[Winner]  # how many battles were won by whom
    n_entrants: int  # in battles
    n_ratings: int  # in the newest file of them


def imported_sets(events: Collection[Recorded]) -> dict[str, ImportedSet]:
    """Return every imported set, by name."""
    battles, ratings = fold(IMPORTED_BATTLES, events), fold(IMPORTED_RATINGS, events)
    sets = {}
    for name in {*battles.names, *ratings}:
        chunks = battles.of([name]).events
        winners = Counter(cell for chunk in chunks for cell in chunk.winners.cells(chunk.n_battles))
        entrants = {entrant for chunk in chunks for entrant in chunk.entrants}
        n_ratings = len(ratings[name].ratings) if name in ratings else 0
        sets[name] = ImportedSet(winners, len(entrants), n_ratings)
    return dict(sorted(sets.items()))
