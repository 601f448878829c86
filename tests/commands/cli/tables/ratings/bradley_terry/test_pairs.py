"""Differences of all pairs as rows, and what they hold for."""

import json

import pytest

from commands.cli.project.bt_options import PairOptions
from commands.cli.tables.ratings.bradley_terry.pairs import pairs_table
from commands.cli.tables.render import Format
from commands.errors import ConfigurationError
from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.bradley_terry.comparisons import Adjustment
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.results.ratings import BradleyTerryPair
from tests.support.builders.battles import in_columns, played
from tests.support.goldens.screens import rendered

PLAIN = BradleyTerryParameters()
GAMES = {("ann", "bob"): (60, 20, 5), ("bob", "cleo"): (30, 28, 0), ("ann", "cleo"): (55, 25, 0)}
BOARD = leaderboard("utility", in_columns(played({**GAMES, ("zoe", "ann"): (1, 1, 0)})), PLAIN)


@pytest.mark.parametrize(
    ("adjustment", "said"),
    [("max-t", "single-step max-t"), ("holm", "p by Holm's step-down method")],
)
def test_each_pair_is_a_row_the_largest_difference_first(adjustment: Adjustment, said: str) -> None:
    """Who is better by how much, and how sure that is; a newcomer's differences have no p."""
    table = pairs_table([BOARD], PLAIN, adjustment, notes=["Judge: stub"])

    rows = [BradleyTerryPair(**row) for row in json.loads(rendered(table, Format.JSON))["rows"]]
    differences = [row.difference for row in rows]
    assert differences == sorted(differences, reverse=True)
    assert len(rows) == 6
    (sure,) = (row for row in rows if (row.entrant_a, row.entrant_b) == ("ann", "bob"))
    assert (sure.low or 0.0) > 0
    assert (sure.p or 1.0) < 0.05
    assert {row.p for row in rows if "zoe" in {row.entrant_a, row.entrant_b}} == {None}
    assert table.notes[0] == "Judge: stub"
    assert said in table.notes[1]
    assert table.facts["adjustment"] == adjustment


def test_json_has_the_matrices_of_all_pairs() -> None:
    """Who tests a difference needs the covariance; null stands where nothing is known."""
    fought = in_columns(played({**GAMES, ("zoe", "ann"): (5, 0, 0)}))
    table = pairs_table([leaderboard("utility", fought, PLAIN)], PLAIN, "max-t")

    fit = json.loads(rendered(table, Format.JSON))["fits"]["utility"]

    assert fit["entrants"] == ["ann", "bob", "cleo", "zoe"]
    assert fit["covariance"][3] == [None] * 4
    assert sum(fit["covariance"][0][:3]) == pytest.approx(0, abs=1e-6)  # the mean is held
    assert fit["p_better"][0][1] + fit["p_better"][1][0] == pytest.approx(1)
    assert fit["p_better"][0][0] is None


def test_an_adjustment_is_one_of_pairs() -> None:
    """It would change nothing in the table of ratings."""
    assert PairOptions().adjustment is None
    assert PairOptions(pairs=True).adjustment == "max-t"
    assert PairOptions(pairs=True, adjust="holm").adjustment == "holm"
    with pytest.raises(ConfigurationError, match="--adjust needs --pairs"):
        assert PairOptions(adjust="holm").adjustment is None
