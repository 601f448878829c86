"""Imported sets of battles and ratings: what each contains."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, TypeAlias

from immutables import Map

from ledger.events.imports import RatingsImported, Winner, set_of
from ledger.recorded import Recorded
from projections.battles.imported import IMPORTED_BATTLES
from projections.fold import Projection, fold

ImportedRatings: TypeAlias = Map[str, RatingsImported]
"""The newest imported ratings of each set, by its name."""


def advance(state: ImportedRatings, events: Iterable[Recorded]) -> ImportedRatings:
    """Add imported ratings, in order."""
    newest = {
        set_of(recorded.stream) or recorded.stream: recorded.event
        for recorded in events
        if isinstance(recorded.event, RatingsImported)
    }
    return state.update(newest)


IMPORTED_RATINGS: Final[Projection[ImportedRatings]] = Projection(initial=Map(), advance=advance)


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
        winners = Counter(each for chunk in chunks for each in chunk.winners.cells(chunk.n_battles))
        entrants = {entrant for chunk in chunks for entrant in chunk.entrants}
        n_ratings = len(ratings[name].ratings) if name in ratings else 0
        sets[name] = ImportedSet(winners, len(entrants), n_ratings)
    return dict(sorted(sets.items()))
