"""The main job as a user does it: run, run again, rate again, audit, replay, and see gaps."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.support.command_line.launching import N_PROMPTS, Tourney, launch, lay_out_small

N_ENTRANTS, N_PAIRS = 4, 6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one folder to all tests here; they leave it as it is."""
    return lay_out_small(tmp_path_factory.mktemp("whole") / "quickstart")


@pytest.fixture(scope="module")
def tourney(place: Path) -> Tourney:
    """Give a function that runs the command line there."""
    return partial(launch, place)


@pytest.fixture(scope="module")
def published(place: Path, tourney: Tourney) -> Path:
    """Give the folder of a run that has been published."""
    done = tourney("run")
    assert done.returncode == 0, done.stderr
    (folder,) = (place / "runs").iterdir()
    return folder


def test_a_run_ends_in_a_leaderboard_and_its_files(published: Path, tourney: Tourney) -> None:
    """The main job: four entrants rated from real generation, every file of a run written."""
    table = json.loads(tourney("project", "elo", "--json").stdout)

    written = {str(file.relative_to(published)) for file in published.rglob("*") if file.is_file()}

    assert len(table["rows"]) == N_ENTRANTS
    assert table["accounts"]["factuality"]["planned"] == N_PROMPTS * N_PAIRS
    assert table["accounts"]["factuality"]["pending"] == 0
    assert table["intervals"]["factuality"]["n_resamples"] == 400
    assert {row["ci95_low"] for row in table["rows"]} == {None}  # of eight prompts: too few
    assert all(row["rating"] for row in table["rows"])
    assert {"manifest.json", "elo_results.json", "verdicts/factuality.jsonl"} <= written
    assert {"elo_per_perm.npz", "pairwise_winrates.csv", "report.html"} <= written


def test_a_second_run_owes_nothing_and_appends_nothing(
    published: Path, place: Path, tourney: Tourney
) -> None:
    """Running again is how a user resumes, so a finished run must be free and silent."""
    with Ledger.read_only(place / "tournament.db") as ledger:
        before = ledger.head

    again = tourney("run")

    with Ledger.read_only(place / "tournament.db") as ledger:
        assert ledger.head == before
    assert again.returncode == 0
    assert "nothing remains to be done: every response" in again.stderr
    assert list((place / "runs").iterdir()) == [published]


def test_rating_again_appends_nothing(published: Path, place: Path, tourney: Tourney) -> None:
    """Another K, or an earlier position, costs neither a call nor an event."""
    content = (place / "tournament.db").read_bytes()

    again = tourney("project", "elo", "--k", "32", "--json")
    earlier = tourney("project", "elo", "--as-of", "60", "--json")

    assert json.loads(again.stdout)["parameters"]["k"] == 32
    assert json.loads(earlier.stdout)["accounts"]["factuality"]["decided"] == 0
    assert (place / "tournament.db").read_bytes() == content
    assert published.is_dir()


def test_a_run_replays_byte_for_byte_and_a_changed_byte_is_named(
    published: Path, tourney: Tourney, tmp_path: Path
) -> None:
    """What was published follows from the events; replay trusts no file."""
    copy = shutil.copytree(published, tmp_path / published.name)
    winrates = copy / "pairwise_winrates.csv"
    winrates.write_bytes(winrates.read_bytes().replace(b"base", b"bass", 1))

    untouched = tourney("replay", "--against", str(published), "--json")
    changed = tourney("replay", "--against", str(copy))

    assert (untouched.returncode, changed.returncode) == (0, 8), untouched.stderr
    assert json.loads(untouched.stdout)["rows"] == []
    assert "pairwise_winrates.csv" in changed.stderr


@pytest.mark.parametrize("as_of", ["5", "99999999999999999999", "2020-01-01"])
def test_any_position_and_time_is_answered_without_a_traceback(
    as_of: str, published: Path, tourney: Tourney
) -> None:
    """While a tournament is being registered there is no judge yet, and before it nothing."""
    done = tourney("project", "elo", "--as-of", as_of)

    assert done.returncode in {0, 2}
    assert "Traceback" not in done.stderr
    assert published.is_dir()


def test_a_mistyped_settings_file_is_not_read_past(published: Path, tourney: Tourney) -> None:
    """Another ledger's ratings, shown without a word, would be taken for these."""
    done = tourney("project", "winrates", "-c", "tournment.toml")

    assert done.returncode == 2
    assert "tournment.toml: there is no such file" in done.stderr
    assert published.is_dir()


def test_every_format_keeps_the_result_apart_from_the_words(
    published: Path, tourney: Tourney
) -> None:
    """A pipe must get the rows alone, and its user still learn what they stand for."""
    done = tourney("project", "winrates", "--format", "csv")

    assert done.stdout.splitlines()[0].startswith("dimension,entrant_a,entrant_b,a_wins")
    assert len(done.stdout.splitlines()) == 1 + N_PAIRS
    assert f"factuality: {N_PROMPTS * N_PAIRS} pairs = " in done.stderr
    assert published.is_dir()
