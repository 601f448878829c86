"""Which battles were imported, and which of them count."""

from ledger.events.imports import BattlesImported, battles_stream
from ledger.store import Ledger
from projections.battles.imported import IMPORTED_BATTLES, ImportedBattles
from projections.fold import fold
from tests.battles import battles
from tests.builders import key

FIRST, SECOND = battles(chunk=1), battles(chunk=2)
CORRECTED = battles(mapping_version=2)
ANOTHER = battles(file_digest=key("another file"))


def known(**sets: list[BattlesImported]) -> ImportedBattles:
    """Return what is known after sets of battles, one after the other."""
    with Ledger.in_memory() as ledger:
        for name, events in sets.items():
            ledger.append(battles_stream(name), events)
        return fold(IMPORTED_BATTLES, ledger.read())


def test_battles_are_kept_by_the_sets_that_they_joined() -> None:
    """One ledger may hold several arenas, which are rated one by one or together."""
    found = known(arena=[FIRST, SECOND], lab=[ANOTHER])

    assert found.names == ("arena", "lab")
    assert found.events == (FIRST, SECOND, ANOTHER)
    assert found.of(["lab"]).events == (ANOTHER,)
    assert found.of([]).events == ()


def test_a_file_that_was_read_anew_counts_as_it_was_read_last() -> None:
    """The mapping was put right; what the old one said stays on record, and counts no more."""
    assert known(arena=[FIRST, SECOND, CORRECTED]).events == (CORRECTED,)


def test_a_file_in_two_sets_counts_once_where_both_are_rated() -> None:
    """Rated together, each of its battles would weigh twice."""
    found = known(arena=[FIRST, SECOND], same=[FIRST])

    assert found.events == (FIRST,)
    assert found.of(["arena"]).events == (FIRST, SECOND)
