"""Status, doctor and a log that goes on: what a user looks at while a run is on its way."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Timer

import pytest
from msgspec.structs import replace

from ledger.store import Ledger
from tests.builders import STREAM, key, known, opened, responses
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields, head_of, started
from tests.commands.games import play
from tests.support.patience import PATIENCE_S

POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the file of a tournament that was played and published."""
    file = tmp_path / "tournament.db"
    play(file)
    return file


@pytest.fixture
def tourney(path: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, path.parent)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Keep everybody from writing into a folder and its files for a while."""
    files = [file for file in folder.iterdir() if file.is_file()]
    for each in (*files, folder):
        each.chmod(0o555)
    try:
        yield
    finally:
        for each in (folder, *files):
            each.chmod(0o755)


def grow(path: Path, opening: int) -> None:
    """Append one event."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, opened(opening=opening)[:1])


def test_status_counts_what_is_on_record(path: Path, tourney: Tourney) -> None:
    """How far it is, without waiting for a fold of a million events."""
    found = fields(tourney("status", "--json"))

    assert found["rows"] == [
        {
            "tournament": "main",
            "responses": 4,
            "responses_failed": 0,
            "tokens": 16,
            "verdicts": 4,
            "without_verdict": 0,
            "decided": 2,
            "tied": 0,
            "inconsistent": 0,
            "samples": 0,
            "unscorable": 0,
        }
    ]
    assert found["checkpoint"] == str(head_of(path))
    assert found["ledger"] == "tournament.db"


def test_status_grows_with_the_ledger_and_leaves_nothing_beside_it(
    path: Path, tourney: Tourney
) -> None:
    """It is counted anew each time."""
    before = {each.name for each in path.parent.iterdir()}
    first = tourney("status").stdout
    again = tourney("status").stdout
    grow(path, 2)
    grown = tourney("status").stdout

    assert first == again
    assert f"{head_of(path).position} events" in grown
    added = {each.name for each in path.parent.iterdir()} - before
    assert added <= {"tournament.db-wal", "tournament.db-shm"}  # SQLite's own


def test_status_of_an_empty_ledger_has_no_rows(tmp_path: Path) -> None:
    """It was opened, and nothing came of it yet."""
    Ledger.open(tmp_path / "tournament.db").close()

    done = launch(tmp_path, "status")

    assert done.returncode == 0, done.stderr
    assert "tournament.db: 0 events" in done.stdout


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv takes root's powers away")
def test_status_of_a_folder_that_cannot_be_written(path: Path) -> None:
    """Somebody looks at an archive, or at a colleague's run."""
    with read_only(path.parent):
        done = launch(path.parent, "status", prefix=POWERLESS)

    assert done.returncode == 0, done.stderr
    assert f"{head_of(path).position} events" in done.stdout


def test_doctor_names_what_was_found_for_programs(path: Path, tourney: Tourney) -> None:
    """A cluster's prologue refuses a machine by it."""
    done = tourney("doctor", "--json")

    found = {row["what"]: row for row in fields(done)["rows"]}
    assert done.returncode == 0, done.stderr
    assert found["ledger"]["says"] == f"tournament.db, head {head_of(path)}"
    assert found["file system"]["grade"] == "good"


def test_doctor_finds_a_machine_unready(path: Path, tourney: Tourney) -> None:
    """Exit 1, after everything was looked at and said."""
    path.write_text("Dear diary, " * 100)

    done = tourney("doctor")

    assert done.returncode == 1
    assert "not ready: ledger" in done.stderr
    assert "is not a ledger" in done.stdout
    assert "models" in done.stdout


def test_a_log_that_follows_shows_what_is_appended(path: Path) -> None:
    """One watches a run from a second terminal, and leaves by Ctrl-C."""
    with following(path, "--type", "ResponseGenerated", "--limit", "1") as process:
        assert process.stdout
        lines = iter(process.stdout.readline, "")
        table = [*takewhile(lambda line: not line.startswith("└"), lines)]
        with Ledger.open(path) as ledger:
            (response, *_) = responses(known(*opened()))
            news = [*opened(opening=2)[:1], replace(response, response_key=key("new"))]
            ledger.append(STREAM, news)
            last = ledger.head.position
        row = json.loads(next(lines))
        process.send_signal(signal.SIGINT)
        _, words = process.communicate()

    assert "ResponseGenerated" in table[-1]
    assert (row["position"], row["type"]) == (last, "ResponseGenerated")
    assert process.returncode == 130
    assert words.endswith("interrupted: what was recorded is kept\n")


@contextmanager
def following(path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Follow a ledger's log in another process, and give up only when it hangs."""
    with started(path.parent, "log", "--follow", *options) as process:
        deadline = Timer(PATIENCE_S, process.kill)
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()
