"""The ratings of others, by the set that they belong to."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.battles import battles_stream
from ledger.events.event import Event
from ledger.events.imported_ratings import ImportedRating, RatingsImported
from ledger.store import Ledger
from projections.fold import fold
from projections.imported_ratings import IMPORTED_RATINGS
from tests.builders import key, recorded
from tests.projections.strategies import QUICK
from tests.strategies import histories

RATINGS = RatingsImported(
    file_digest=key("ratings"),
    format="judgearena",
    mapping_version=1,
    ratings=(ImportedRating(entrant="base", rating=1000.0, source="human"),),
)


@QUICK
@given(history=histories(), data=st.data())
def test_a_fold_may_stop_and_resume(history: list[Event], data: st.DataObject) -> None:
    """As every projection."""
    events = recorded(history)
    at = data.draw(st.integers(min_value=0, max_value=len(events)))

    resumed = fold(IMPORTED_RATINGS, events[at:], start=fold(IMPORTED_RATINGS, events[:at]))

    assert resumed == fold(IMPORTED_RATINGS, events)


def test_the_newest_ratings_of_a_set_are_shown() -> None:
    """An arena publishes anew; what it said before stays on record."""
    newer = replace(RATINGS, file_digest=key("newer ratings"))
    with Ledger.in_memory() as ledger:
        ledger.append(battles_stream("arena"), [RATINGS, newer])
        ledger.append(battles_stream("lab"), [RATINGS])

        found = fold(IMPORTED_RATINGS, ledger.read())

    assert dict(found.newest) == {"arena": newer, "lab": RATINGS}
