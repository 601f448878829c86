"""The sets of battles and ratings that were imported: how much each holds."""

from collections import Counter
from collections.abc import Collection
from typing import Final, NamedTuple

from ledger.events.imports import Winner
from ledger.recorded import Recorded
from projections.fold import fold
from projections.imported_battles import IMPORTED_BATTLES
from projections.imported_ratings import IMPORTED_RATINGS

IMPORTED_EVENTS: Final = frozenset({"BattlesImported", "RatingsImported"})


class ImportedSet(NamedTuple):
    """What a set holds: of a file that was read twice, only what was read last."""

    winners: Counter[Winner]  # how many battles were won by whom
    n_entrants: int  # in battles
    n_ratings: int  # in the newest file of them


def imported_sets(events: Collection[Recorded]) -> dict[str, ImportedSet]:
    """Return the sets by name."""
    battles, ratings = fold(IMPORTED_BATTLES, events), fold(IMPORTED_RATINGS, events).newest
    sets = {}
    for name in {*battles.names, *ratings}:
        chunks = battles.of([name]).events
        winners = Counter(each for chunk in chunks for each in chunk.winners.cells(chunk.n_battles))
        entrants = {entrant for chunk in chunks for entrant in chunk.entrants}
        n_ratings = len(ratings[name].ratings) if name in ratings else 0
        sets[name] = ImportedSet(winners, len(entrants), n_ratings)
    return dict(sorted(sets.items()))
