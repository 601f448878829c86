"""The ratings of others, by the set that they belong to."""

from msgspec.structs import replace

from ledger.events.imports import ImportedRating, RatingsImported, battles_stream
from ledger.store import Ledger
from projections.battles.imported_sets import IMPORTED_RATINGS
from projections.fold import fold
from tests.builders import key

RATINGS = RatingsImported(
    file_digest=key("ratings"),
    format="judgearena",
    mapping_version=1,
    ratings=(ImportedRating(entrant="base", rating=1000.0, source="human"),),
)


def test_the_newest_ratings_of_a_set_are_shown() -> None:
    """An arena publishes anew; what it said before stays on record."""
    newer = replace(RATINGS, file_digest=key("newer ratings"))
    with Ledger.in_memory() as ledger:
        ledger.append(battles_stream("arena"), [RATINGS, newer])
        ledger.append(battles_stream("lab"), [RATINGS])

        found = fold(IMPORTED_RATINGS, ledger.read())

    assert dict(found.newest) == {"arena": newer, "lab": RATINGS}
