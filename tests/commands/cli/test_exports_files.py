"""Files of records: their kind is what their suffix says."""

import json
from pathlib import Path
from typing import Final

import pytest
from pyarrow import parquet as pq  # type: ignore[import-untyped]  # it says no types

from commands.cli.exports import require_suffix, write_records
from commands.errors import ConfigurationError
from commands.importing.formats.rows import Fields

COLUMNS: Final = {"name": str, "n": int, "share": float}
RECORDS: Final[tuple[Fields, ...]] = ({"name": '=1, "x"', "n": 2, "other": 0}, {"share": -0.5})


def test_a_file_has_the_columns_and_types_that_its_kind_can_have(tmp_path: Path) -> None:
    """Texts are guarded against spreadsheets, numbers are not texts; lines of JSON lose nothing.

    A column of Parquet without a value has a type all the same.
    """
    for suffix in ("csv", "parquet", "jsonl"):
        write_records(RECORDS, tmp_path / f"a.{suffix}", COLUMNS)

    written = (tmp_path / "a.csv").read_bytes().decode()
    table = pq.read_table(tmp_path / "a.parquet")
    assert written == 'name,n,share\r\n"\'=1, ""x""",2,\r\n,,-0.5\r\n'
    assert [str(each) for each in table.schema.types] == ["string", "int64", "double"]
    assert table.to_pylist() == [
        {"name": '=1, "x"', "n": 2, "share": None},
        {"name": None, "n": None, "share": -0.5},
    ]
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert tuple(map(json.loads, lines)) == RECORDS


def test_more_rows_than_one_batch_are_all_written(tmp_path: Path) -> None:
    """Also the last ones, which fill no batch."""
    rows = ({"n": n} for n in range(12_345))

    write_records(rows, tmp_path / "a.parquet", {"n": int})

    assert pq.read_table(tmp_path / "a.parquet")["n"].to_pylist() == [*range(12_345)]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_that_cannot_be_finished_stays_as_it_was(tmp_path: Path, suffix: str) -> None:
    """It is written beside, then renamed."""
    file = tmp_path / f"a{suffix}"
    file.write_text("before")

    def failing(record: Fields) -> Fields:
        if "share" in record:
            raise RuntimeError("cut off")
        return record

    with pytest.raises(RuntimeError, match="cut off"):
        write_records(map(failing, RECORDS), file, COLUMNS)

    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_a_suffix_that_says_nothing_is_refused_with_those_that_do() -> None:
    """Lines of JSON in a file named .xlsx would help nobody."""
    require_suffix(None)
    require_suffix(Path("a.json"), ".json")
    require_suffix(Path("/dev/null"))  # a device, or a pipe, is as standard output

    with pytest.raises(ConfigurationError) as caught:
        require_suffix(Path("a.xlsx"), ".csv", ".jsonl", ".parquet")

    assert str(caught.value) == (
        "--output a.xlsx: the suffix is '.xlsx', but must be .csv, .jsonl or .parquet;"
        " the suffix chooses the format"
    )
