"""`tourney report` writes a page on the tournament as it stands, or the finding alone."""

from pathlib import Path

import pytest

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
