"""A calibrated temperature as a row."""

import json
from math import nan

from commands.cli.tables.reliability import temperature_table
from commands.cli.tables.render import Format
from projections.battles.settled import JudgeCalibration
from projections.battles.soft_scores import Temperature
from tests.commands.make_screens import rendered


def test_one_prompt_gives_a_temperature_without_bounds() -> None:
    """NaN is no JSON, and nothing is known of how prompts differ."""
    found = JudgeCalibration("utility", Temperature(0.4, nan, 12, 3, 1), -8.0, -8.5)
    table = temperature_table([found], notes=["said"], facts={"against": "votes"})

    (row,) = json.loads(rendered(table, Format.JSON))["rows"]

    assert (row["low"], row["high"]) == (None, None)
    assert (row["temperature"], row["log_likelihood"], row["log_likelihood_usual"]) == (
        0.4,
        -8.0,
        -8.5,
    )
    assert table.notes[0] == "said"
