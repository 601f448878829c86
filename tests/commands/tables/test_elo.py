"""Elo standings as rows."""

from commands.tables.elo import elo_table
from ledger.events.ratings import EloParameters
from ledger.identity import Dimension
from projections.settlement import settle
from projections.standings import standings
from tests.builders import opened
from tests.commands.builders import JUDGE, P1
from tests.specification import after

NOBODY_PLAYED = standings(
    Dimension("factuality"),
    settle(after(*opened()), [P1], JUDGE),
    [each.entrant_id for each in after(*opened()).roster],
    EloParameters(permutations=2, k_sweep=(4.0, 0.5)),
)


def test_an_entrant_without_a_match_is_named_and_not_rated() -> None:
    """The initial rating would look like a result."""
    table = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE)

    assert [row["rating"] for row in table.rows] == [None, None]
    assert [row["k_4"] for row in table.rows] == [None, None]
    assert "base is not rated on factuality: no match of it counts." in table.notes


def test_each_other_k_is_a_column_of_its_own() -> None:
    """How far a ranking depends on K is seen at one glance."""
    table = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE)

    assert [column.heading for column in table.columns][-2:] == ["K=4", "K=0.5"]


def test_the_account_stands_beside_the_ratings() -> None:
    """What is pending or failed is part of every claim."""
    table = elo_table([NOBODY_PLAYED], EloParameters(permutations=2), JUDGE)

    assert table.notes[0].startswith("factuality: 1 pairs = 0 decided")
    assert table.facts["judge"] == "reference"
