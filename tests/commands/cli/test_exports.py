"""`tourney report` and files of records: of the tournament as it stands, by the suffix."""

import json
from pathlib import Path
from typing import Final

import pytest
from pyarrow import parquet as pq  # type: ignore[import-untyped]  # it says no types

from commands.cli.exports import require_suffix, write_records
from commands.errors import ConfigurationError
from commands.importing.formats.rows import Fields
from ledger.store import Ledger
from tests.support.builders.events import STREAM, opened
from tests.support.builders.worlds import RUBRICS, history
from tests.support.command_line.launching import launch


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with a ledger of two dimensions, one of them judged."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, history(opened(rubrics=RUBRICS), "a", "b"))
    return tmp_path


def test_the_report_is_of_the_tournament_as_it_stands(place: Path) -> None:
    """No run need be published, and nothing is recorded."""
    before = (place / "tournament.db").read_bytes()

    done = launch(place, "report")
    again = launch(place, "report", "-o", "again.html")

    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "written to report.html\n")
    source = (place / "report.html").read_text("utf-8")
    assert source.startswith("<!doctype html>")
    assert 'class="battle card"' in source
    assert source.count('<table class="board">') == 2
    assert (place / "again.html").read_text("utf-8") == source, again.stderr
    assert (place / "tournament.db").read_bytes() == before


def test_the_finding_alone_is_written_for_a_pull_request(place: Path) -> None:
    """By the file's suffix, or on standard output if it is asked for by name."""
    done = launch(place, "report", "-o", "summary.md")
    piped = launch(place, "report", "--format", "md")

    assert (done.stdout, done.stderr) == ("", "written to summary.md\n")
    assert (place / "summary.md").read_text("utf-8") == piped.stdout
    assert piped.stdout.count("| Rank | Entrant |") == 2
    assert piped.stderr == ""
    assert not (place / "report.html").exists()


def test_a_file_that_is_named_as_another_format_is_refused(place: Path) -> None:
    """HTML in a file of Markdown would be shown as text."""
    name = "x.html.gz"
    done = launch(place, "report", "-o", name)

    assert done.returncode == 2
    assert f"--output {name}: the report is HTML, not {Path(name).suffix}" in done.stderr
    assert not (place / name).exists()
    assert launch(place, "report", "-o", "plain").returncode == 0
    done = launch(place, "report", "-o", "x.html", "--format", "md")
    assert "--output x.html: the report is Markdown, not .html" in done.stderr
    done = launch(place, "report", "-o", "x.html", "--dimension", "beauty")
    assert "known: factuality, utility" in done.stderr
    assert not (place / "x.html").exists()


def test_the_report_is_of_a_position_a_dimension_and_without_texts_if_asked(place: Path) -> None:
    """What is on it can be chosen as in every table."""
    chosen = ("--dimension", "utility", "--battles", "none", "--as-of", "9")

    done = launch(place, "report", *chosen)

    assert done.returncode == 0, done.stderr
    source = (place / "report.html").read_text("utf-8")
    assert "Computed from events 1 to 9 of the ledger" in source
    assert source.count('<table class="board">') == 1
    assert 'class="battle card"' not in source


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
