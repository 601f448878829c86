"""The benchmarks run; what they measure is for `make bench`."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.benchmarks.suite import BENCHMARKS
from tests.benchmarks.table import Row, renewed, section

ROOT = Path(__file__).parents[2]
HEAVY = (
    "hydra",
    "reading",
    "processes",
    "judging",
    "asking",
    "bradley-terry",
    "elo",
    "elo-coverage",
    "fragility",
    "growth",
    "importing",
    "report",
    "status",
    "sureness",
    "view",
)
LIGHT = tuple(name for name in BENCHMARKS if name not in HEAVY)
N_LIGHT, N_HEAVY = 28, 164
N_HEADS = 2  # lines above the rows of a section: the header and the line below it
ROW = Row("append", "1 event/s", "", "", "", "")


@pytest.mark.parametrize(
    ("names", "n_rows"),
    [(LIGHT, N_LIGHT), pytest.param(HEAVY, N_HEAVY, marks=pytest.mark.nightly)],
)
def test_the_table_comes_out_whole(names: Sequence[str], n_rows: int, tmp_path: Path) -> None:
    """A benchmark that breaks is noticed when the code is changed, not before a release."""
    table = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "tests.benchmarks", "--scale", "0.001", "--rounds", "1"]
    places = ["--folder", str(tmp_path), "--table", str(table)]

    subprocess.run([*command, *places, *names], cwd=ROOT, check=True)

    lines = table.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert sections == [name for name in BENCHMARKS if name in names]
    assert len(rows) == n_rows + N_HEADS * len(names)
    assert all(row.count(" | ") == len(Row._fields) - 1 for row in rows)
    assert list(tmp_path.iterdir()) == [table]


def test_what_is_measured_again_leaves_the_other_sections_as_they_were() -> None:
    """Their figures are of another day or machine, as they go on to say."""
    file = ""
    for name, day in (("verify", "Monday"), ("single", "Monday"), ("verify", "Tuesday")):
        content = section({"date": day}, [ROW._replace(benchmark=name)])
        file = renewed(file, name, content, order=["single", "verify"])

    assert re.findall(r"^## (.*)\n\ndate: (.*)$", file, re.MULTILINE) == [
        ("single", "Monday"),
        ("verify", "Tuesday"),
    ]
    assert file.count("| single | 1 event/s |") == file.count("| verify | 1 event/s |") == 1
    assert file.count("# Benchmarks") == 1


def test_the_section_of_a_benchmark_that_is_no_more_goes() -> None:
    """What it says can be measured by nobody."""
    file = renewed("", "old", section({}, [ROW]), order=["old"])

    assert "## old" not in renewed(file, "new", section({}, [ROW]), order=["new"])
