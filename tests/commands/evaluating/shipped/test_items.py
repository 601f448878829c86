"""Reading data sets line by line."""

from pathlib import Path

import msgspec
import pytest

from commands.errors import ConfigurationError
from commands.evaluating.shipped.items import read_lines
from tests.support.builders.evaluating import write_lines


class Row(msgspec.Struct):
    """A line of a small data set."""

    word: str
    n: int = 0


def faults(file: Path) -> list[str]:
    """Return what is wrong with a file, by its own name."""
    with pytest.raises(ConfigurationError) as caught:
        read_lines(file, Row)
    return [fault.replace(f"{file.parent}/", "") for fault in caught.value.faults]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_rows_are_known_by_their_lines_and_other_keys_ignored(tmp_path: Path, name: str) -> None:
    """Data sets have more than is needed here, are published compressed, or begin with a mark."""
    rows = ['\ufeff{"word": "a", "n": 1}', "", {"word": "b", "explanation": None}]

    found = read_lines(write_lines(tmp_path / name, *rows), Row)

    assert found == {f"{name}:1": Row("a", 1), f"{name}:3": Row("b")}


def test_all_faults_are_told_with_their_lines(tmp_path: Path) -> None:
    """Who mends a data set wants to see it whole."""
    file = write_lines(tmp_path / "rows.jsonl", {"word": "a"}, "{", {"n": 1}, {"word": 2}, "[]")

    found = faults(file)

    assert [fault.partition(": ")[0] for fault in found] == [
        f"rows.jsonl:{n}" for n in (2, 3, 4, 5)
    ]
    assert "not JSON" in found[0]
    assert "'word' is missing" in found[1]
    assert found[2] == "rows.jsonl:4: word: must be a text, not a whole number"


def test_of_many_faults_the_first_are_told_and_the_others_counted(tmp_path: Path) -> None:
    """A file of another layout is wrong in every line."""
    found = faults(write_lines(tmp_path / "rows.jsonl", *[{}] * 100))

    assert len(found) == 21
    assert found[-1] == "... and 80 faults more"


def test_a_file_that_gives_no_rows_is_refused(tmp_path: Path) -> None:
    """An evaluation of nothing has no score."""
    empty = write_lines(tmp_path / "empty.jsonl", "")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(write_lines(tmp_path / "rows.jsonl.gz", {"word": "a"}).read_bytes()[:-9])

    assert faults(empty) == ["empty.jsonl: the file is empty; it needs one JSON object per line"]
    assert faults(tmp_path / "none.jsonl")[0].startswith("none.jsonl: cannot be read: ")
    assert faults(cut)[0].startswith("cut.jsonl.gz: cannot be read: ")
