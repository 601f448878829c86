"""The ratings of others that were imported, by the set of battles that they belong to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from immutables import Map

from ledger.events.imports import RatingsImported, set_of
from ledger.recorded import Recorded
from projections.fold import Projection


@dataclass(frozen=True)
class ImportedRatings:
    """What others say, the newest of each set, by its name."""

    newest: Map[str, RatingsImported] = Map()


def advance(state: ImportedRatings, events: Iterable[Recorded]) -> ImportedRatings:
    """Return what is known after more events, in order."""
    newest = {
        set_of(recorded.stream) or recorded.stream: recorded.event
        for recorded in events
        if isinstance(recorded.event, RatingsImported)
    }
    return ImportedRatings(state.newest.update(newest))


IMPORTED_RATINGS: Final = Projection(initial=ImportedRatings(), advance=advance)
