"""The benchmarks run; what they measure is for `make bench`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.suite import BENCHMARKS
from tests.benchmarks.table import Row, renewed, section

ROOT = Path(__file__).parents[2]
ROW = Row("append", "1 event/s", "", "", "", "")


@pytest.mark.nightly
@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_table_of_a_benchmark_comes_out(name: str, tmp_path: Path) -> None:
    """A benchmark that breaks is noticed when the code is changed, not before a release."""
    table = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "tests.benchmarks", "--scale", "0.001", "--rounds", "1"]
    places = ["--folder", str(tmp_path), "--table", str(table)]

    subprocess.run([*command, *places, name], cwd=ROOT, check=True)

    lines = table.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert sections == [name]
    assert len(rows) > 2  # a header, the line below it, and what was measured
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
