"""Figures that stand alone: goldens, and what names in them cannot do."""

import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from commands.cli.tables.render import Format
from commands.errors import ConfigurationError
from commands.report.drawings.figures import curve_figure, elo_figure, win_rates_figure
from tests.support.goldens.screens import SAMPLE, rendered

GOLDEN: Final = Path(__file__).parents[3] / "golden/figures"
HOSTILE: Final = '</text><script>alert(1)</script>" onload="x\x1b[31m\u202e\x00'
ELO: Final = [
    {"dimension": "truth", "entrant": name, "rating": at, "ci95_low": low, "ci95_high": high}
    for name, at, low, high in (
        ("tuned", 1431.0, 1410.5, 1460.0),
        (HOSTILE, 1369.0, None, None),
        ("idle", None, None, None),
    )
]
WON: Final = [{"dimension": "truth", "entrant_a": "a", "entrant_b": "b", "win_rate": 0.75}]
DRAWN: Final = {
    "elo.svg": elo_figure("Elo, K = 8", ELO),
    "winrates.svg": win_rates_figure("Pairs", WON),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_what_was_agreed_on(name: str) -> None:
    """It goes into papers; run this file as a program to write the goldens."""
    assert (GOLDEN / name).read_text(encoding="utf-8") == DRAWN[name]


def test_a_name_in_a_figure_has_no_effect() -> None:
    """A figure is opened in browsers and programs that run scripts."""
    root = ET.fromstring(DRAWN["elo.svg"])  # noqa: S314  # our own text

    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {
        *("svg", "title", "desc", "style", "rect", "text", "g", "line"),
    }
    assert not [key for each in root.iter() for key in each.attrib if key.startswith("on")]
    assert not {"\x1b", "\u202e", "\x00"} & {*DRAWN["elo.svg"]}


def test_a_metric_over_steps_is_a_curve() -> None:
    """Their order is that of the steps."""
    about = {"evaluation": "math", "metric": "acc", "unit": "share", "higher_is_better": True}
    rows = [
        {**about, "training": "run", "step": step, "value": step / 2000, "low": None, "high": None}
        for step in (1000, 50)
    ]

    drawn = curve_figure("Metrics", rows)

    (curve,) = re.findall(r'class="curve" points="([^"]+)"', drawn)
    (low, early), (high, late) = (map(float, point.split(",")) for point in curve.split())
    assert (low < high, early > late) == (True, True)
    assert ">Training (steps)<" in drawn


def test_a_table_without_a_figure_names_those_that_have_one() -> None:
    """Nobody guesses what can be drawn."""
    with pytest.raises(
        ConfigurationError, match=r"figures exist for .*winrates.*calibration.*metrics"
    ):
        rendered(SAMPLE, Format.SVG)


if __name__ == "__main__":
    for name, text in DRAWN.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
