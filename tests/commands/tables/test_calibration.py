"""The reliability table, for people and for machines."""

import json

import pytest

from commands.cli.tables.reliability import calibration_table
from commands.cli.tables.render import Format
from ledger.identity import Dimension, EntrantId
from projections.reliability.calibration import Calibration, Case
from tests.builders import judge
from tests.commands.make_screens import SURE, rendered

JUDGED = Calibration(EntrantId("poe"), Dimension("utility"), (Case(0.5, 0.75),))
UNKNOWN = Calibration(EntrantId("poe"), None, (), n_left_out=3)


def test_machines_read_each_bin_and_what_sums_them_up() -> None:
    """Nothing is rounded, an empty bin is null, and both ways to measure have the same keys."""
    found = json.loads(rendered(calibration_table([SURE]), Format.JSON))

    keys = ["dimension", "entrant", "bin", "low", "high", "n", "confidence", "correctness"]
    assert (found["schema"], found["against"], found["judge"]) == (
        "tourney/calibration@1",
        "gold",
        None,
    )
    assert [list(row) for row in found["rows"]] == [keys] * 10
    assert list(found["rows"][0].values())[3:] == [0.0, 0.1, 0, None, None]
    assert list(found["rows"][9].values())[2:] == ["[0.9, 1.0]", 0.9, 1.0, 2, 0.925, 0.5]
    (measures,) = found["measures"]
    assert measures == {
        "dimension": None,
        "entrant": "full_poe",
        "n": 4,
        "n_left_out": 2,
        "ece": pytest.approx((0.85 + 0.35 + 0.1) / 4),
        "brier": pytest.approx((0.05**2 + 0.9**2 + 0.35**2 + 0.1**2) / 4),
    }


def test_a_judged_table_says_on_which_dimension_and_by_whom() -> None:
    """The same entrant has a table for each dimension."""
    table = calibration_table([JUDGED], judge("opus"), accounts=["utility: 1 pair"])

    assert [column.key for column in table.columns][:2] == ["dimension", "entrant"]
    assert (table.facts["against"], table.facts["judge"]) == ("judged", "opus")
    assert table.notes[0].startswith("poe on utility: n = 1, gap 0.250, square 0.062; 0 left")
    assert table.columns[-1].heading == "Win share"
    assert "not the ECE and Brier score of correctness" in table.notes[1]
    assert table.notes[-1] == "utility: 1 pair"


def test_what_cannot_be_measured_is_not_zero() -> None:
    """Three responses, and no gold answer to any of them."""
    table = calibration_table([UNKNOWN])

    assert table.notes[0] == "poe: n = 0; 3 left out (no gold answer)"
    assert json.loads(rendered(table, Format.JSON))["measures"][0]["ece"] is None


def test_where_nobody_says_how_sure_it_is_the_setting_is_named() -> None:
    """An empty table alone would look like a fault."""
    table = calibration_table([])

    assert (table.rows, len(table.notes)) == ((), 1)
    assert "needs_uncertainty = true" in table.notes[0]
