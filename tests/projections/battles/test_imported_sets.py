"""What each imported set holds: battles, and the ratings of others."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ledger.events.imports import CodedColumn, ImportedRating, RatingsImported, battles_stream
from ledger.events.registry import Event
from ledger.store import Ledger
from projections.battles.imported_sets import (
    IMPORTED_BATTLES,
    ImportedSet,
    imported_sets,
)
from projections.fold import fold
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import key, recorded

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


@given(
    st.lists(st.tuples(st.sampled_from("fg"), st.integers(min_value=1, max_value=3)), max_size=6)
)
def test_those_are_counted_that_count(readings: list[tuple[str, int]]) -> None:
    """A file that was read anew by another mapping counts as it was read last."""
    read = recorded(
        [
            imported_battles(file_digest=key(file), mapping_version=version, chunk=number)
            for number, (file, version) in enumerate(readings, start=1)
        ]
    )

    found = imported_sets(read).values()

    counting = fold(IMPORTED_BATTLES, read).events
    assert sum((each.winners for each in found), Counter()) == Counter(
        winner for each in counting for winner in each.winners.cells(each.n_battles)
    )
