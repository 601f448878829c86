"""The benchmarks run; what they measure is for `make bench`."""

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.row import Row

ROOT = Path(__file__).parents[2]
N_ROWS = 74  # the header and the line below it are two


def test_the_table_comes_out_whole(tmp_path: Path) -> None:
    """A benchmark that breaks is noticed when the code is changed, not before a release."""
    table = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "tests.benchmarks", "--scale", "0.001", "--rounds", "1"]

    subprocess.run(
        [*command, "--folder", str(tmp_path), "--table", str(table)], cwd=ROOT, check=True
    )

    lines = table.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert len(rows) == N_ROWS
    assert all(line.count(" | ") == len(Row._fields) - 1 for line in lines if line.startswith("|"))
    assert list(tmp_path.iterdir()) == [table]
