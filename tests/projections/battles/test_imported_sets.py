"""What each imported set holds: battles, and the ratings of others."""

from ledger.events.imports import CodedColumn, ImportedRating, RatingsImported, battles_stream
from ledger.events.registry import Event
from ledger.store import Ledger
from projections.battles.imported_sets import ImportedSet, imported_sets
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import key

THREE_RATINGS = tuple(ImportedRating(entrant=name, rating=1000.0, source="human") for name in "xyz")


def known(**sets: list[Event]) -> dict[str, ImportedSet]:
    """Return what is known after events of sets, one after the other."""
    with Ledger.in_memory() as ledger:
        for name, events in sets.items():
            ledger.append(battles_stream(name), events)
        return imported_sets([*ledger.read()])


def test_battles_are_counted_by_who_won_and_entrants_once() -> None:
    """Over all files and chunks of a set; another set has its own."""
    first = imported_battles("xxz", "yzy", winners=CodedColumn(("model_a", "tie", "no verdict")))
    more = imported_battles(file_digest=key("another file"))

    found = known(arena=[first, more], lab=[more])

    assert found["arena"].winners == {"model_a": 2, "tie": 1, "no verdict": 1}
    assert (found["arena"].n_entrants, found["lab"].n_entrants) == (3, 2)


def test_the_newest_ratings_of_a_set_are_counted() -> None:
    """A set may have ratings and no battles."""
    older, newer = (
        RatingsImported(
            file_digest=key(f"{n}"), format="x", mapping_version=1, ratings=THREE_RATINGS[:n]
        )
        for n in (3, 2)
    )

    (found,) = known(arena=[older, newer]).values()

    assert (found.n_ratings, found.winners.total(), found.n_entrants) == (2, 0, 0)
