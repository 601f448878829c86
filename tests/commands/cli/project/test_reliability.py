"""The tables of how far judges and an entrant's probabilities can be relied on."""

import json
from functools import partial
from math import nan

import pytest

from commands.cli.project.reliability import (
    bias_table,
    calibration_table,
    fragility_table,
    temperature_table,
)
from commands.cli.tables.render import Format, print_table
from commands.cli.tables.table import Table
from ledger.identity import Dimension, EntrantId
from projections.battles.soft_scores import JudgeCalibration, Temperature
from projections.reliability.calibration import Calibration, Case
from projections.results.judges import BiasRow
from projections.results.ratings import FragilityRow
from tests.support.builders.events import judge
from tests.support.goldens.screens import SURE, printed, rendered

JUDGED = Calibration(EntrantId("poe"), Dimension("utility"), (Case(0.5, 0.75),))


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
    table = calibration_table([Calibration(EntrantId("poe"), None, (), n_left_out=3)])

    assert table.notes[0] == "poe: n = 0; 3 left out (no gold answer)"
    assert json.loads(rendered(table, Format.JSON))["measures"][0]["ece"] is None


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            calibration_table([]),
            "no response has p_correct: only entrants with needs_uncertainty = ",
        ),
        (
            fragility_table([]),
            "No two entrants have finite ratings that compare, so no pr",
        ),
        (
            bias_table([]),
            "no judge has given a verdict on a pair of different responses in both or",
        ),
    ],
    ids=["calibration", "fragility", "bias"],
)
def test_where_there_is_no_row_it_is_said_why(table: Table, said: str) -> None:
    """A command that prints nothing looks broken."""
    shown = rendered(table)

    assert shown.startswith(said)
    assert shown.count("\n") == 1


def test_one_prompt_gives_a_temperature_without_bounds() -> None:
    """NaN is no JSON, and nothing is known of how prompts differ."""
    found = JudgeCalibration("utility", Temperature(0.4, nan, 12, 3, 1), -8.0, -8.5)
    table = temperature_table([found], notes=["said"], facts={"against": "votes"})

    (row,) = json.loads(rendered(table, Format.JSON))["rows"]

    assert (row["low"], row["high"]) == (None, None)
    assert (row["temperature"], row["log_likelihood_usual"]) == (0.4, -8.5)
    assert table.notes[0] == "said"


def test_a_table_names_the_first_decisive_prompts_and_data_all() -> None:
    """A leader of a hundred prompts would else fill the screen; a nameless prompt has a dash."""
    gaps = [
        FragilityRow("style", "ann", "bob", 12.5, 4, 9, ("p1", None, "3", "p4")),
        FragilityRow("style", "bob", "cat", 0.0, 0, 9, ()),
        FragilityRow("style", "cat", "dan", 1.0, None, 9, None),
    ]

    table = fragility_table(gaps)

    assert [row["n_decisive"] for row in table.rows] == [4, 0, None]
    assert "p1, \N{EN DASH}, 3, ..." in rendered(table, Format.MD)
    assert "p1; ; 3; p4" in rendered(table, Format.CSV)
    found = json.loads(rendered(table, Format.JSON))["rows"]
    assert [row["decisive"] for row in found] == [["p1", None, "3", "p4"], [], None]


def bias_row(measure: str, value: float | None, reason: str | None = None) -> BiasRow:
    """Return a figure about a judge."""
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return BiasRow("style", "ann", measure, None, value, low, high, "share", 8, "pairs", reason)


def test_a_table_of_biases_says_what_its_measures_mean_and_why_some_are_missing() -> None:
    """In plain words, each once, and only of what is there."""
    rows = [
        bias_row("slot preference", 0.25),
        bias_row("flips", 0.5),
        bias_row("flips", 0.75),
        bias_row("headers", None, "all alike"),
        bias_row("lists", None, "all alike"),
        bias_row("self-preference", None, "one judge"),
    ]

    table = bias_table(rows)

    assert [row["value"] for row in table.rows] == [0.25, 0.5, 0.75, None, None, None]
    assert table.rows[0]["ci95_low"] == 0.15
    assert table.notes[:2] == (
        "style, ann: no headers, lists: all alike.",
        "style, ann: no self-preference: one judge.",
    )
    assert [note.partition(":")[0] for note in table.notes[2:]] == ["Slot preference", "Flips"]


def test_at_80_columns_a_bias_keeps_its_unit_and_its_interval() -> None:
    """A share of 0.035 and -8 Elo points under one heading are no numbers without it."""
    of = "base_olmo and security_plus_robustness"
    rows = [bias_row("flips", 0.035), bias_row("length", -45.457)]
    table = bias_table([each._replace(of=of) for each in rows])

    shown = printed(partial(print_table, table, Format.TABLE), width=80)

    heading = shown.split("flips")[0]
    assert {"Unit", "95", "Value"} <= {*heading.split()}
