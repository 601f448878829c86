"""Keeping a ledger: looked at on its way, checked against what was noted, and copied."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger.store import Ledger
from tests.support.builders.events import STREAM, key, known, opened, responses
from tests.support.builders.games import DELETE, play
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields, head_of
from tests.support.command_line.warm import Running, begin
from tests.support.faults.hostile import tamper


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


def test_the_hash_of_an_earlier_position_can_be_looked_up(path: Path, tourney: Tourney) -> None:
    """Somebody asks what was known when a paper was sent."""
    with Ledger.read_only(path) as ledger:
        chain = ledger.chain_at(5)

    assert fields(tourney("log", "5"))["chain"] == chain
    assert tourney("log", "5", "--as-of", "4").stdout == ""
    assert tourney("log", "5", "--follow").returncode == 2


def test_events_are_listed_by_their_type(tourney: Tourney) -> None:
    """A misspelt type is no id of anything; nearly one is told."""
    listed = tourney("log", "VerdictReceived", "--limit", "2", "--format", "jsonl")
    unknown = tourney("log", "VerdictRecieved")

    assert [json.loads(line)["type"] for line in listed.stdout.splitlines()] == [
        "VerdictReceived"
    ] * 2
    assert unknown.returncode == 2
    assert "did you mean VerdictReceived" in unknown.stderr


def test_verify_says_what_it_looked_at(path: Path, tourney: Tourney) -> None:
    """Silence could mean that nothing was checked."""
    head = head_of(path)

    done = tourney("verify")

    said = f"{head.position} events, 1 published run checked: 0 faults, checkpoint {head}\n"
    assert (done.returncode, done.stdout) == (0, said)


def test_a_ledger_that_was_cut_does_not_pass(path: Path, tourney: Tourney) -> None:
    """What is left is sound in itself, so only a checkpoint can tell."""
    noted = head_of(path)
    tamper(path, DELETE(noted.position))

    without, compared = tourney("verify"), tourney("verify", "--checkpoint", str(noted), "--json")

    assert without.returncode == 0
    assert compared.returncode == 8
    (row,) = fields(compared)["rows"]
    assert row["position"] == noted.position - 1
    assert f"before the kept head {noted}: " in row["why"]
    assert "1 fault in tournament.db" in compared.stderr


def test_a_backup_is_the_same_ledger_in_one_file(path: Path, tourney: Tourney) -> None:
    """It is put onto a stick or a server, with nothing beside it."""
    safe = path.parent / "safe"
    safe.mkdir()

    with Ledger.open(path) as being_written:
        being_written.append(STREAM, opened(opening=2)[:1])
        done = tourney("backup", "safe/copy.db")
        head = being_written.head

    assert done.returncode == 0, done.stderr
    assert f"{head.position} events in safe/copy.db, checkpoint {head}" in done.stderr
    assert [file.name for file in safe.iterdir()] == ["copy.db"]
    moved = shutil.move(safe / "copy.db", path.parent / "moved.db")
    assert tourney("verify", "-l", str(moved), "--checkpoint", str(head)).returncode == 0


def test_what_is_left_of_a_killed_backup_is_named(path: Path, tourney: Tourney) -> None:
    """It takes as much room as a backup, and nobody else clears it away."""
    left = path.with_name("copy.db.0123abcd.unfinished")
    left.write_bytes(b"half")

    done = tourney("backup", "copy.db")

    assert done.returncode == 0
    assert f"{left.name} was left by an unfinished backup" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("tournament.db", "tournament.db exists already"),
        ("missing/copy.db", "cannot write missing/copy.db"),
    ],
)
def test_a_backup_never_overwrites(path: Path, tourney: Tourney, to: str, why: str) -> None:
    """What lies there may be the only good copy."""
    head = head_of(path)

    done = tourney("backup", to)

    assert done.returncode == 1
    assert why in done.stderr
    assert head_of(path) == head


@pytest.mark.parametrize(
    "command",
    [
        "verify",
        "status",
        "export events",
        "annotate --annotator ann",
        "redact 1 --why x",
    ],
)
def test_where_no_ledger_is_a_reader_says_so(tmp_path: Path, command: str) -> None:
    """A mistyped place is the user's to put right, and must not be created by reading it."""
    done = launch(tmp_path, *command.split(), "-l", "none.db")

    assert done.returncode == 2
    assert "there is no ledger at none.db" in done.stderr
    assert list(tmp_path.iterdir()) == []


POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()


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


def test_status_of_an_empty_ledger_has_no_rows(tmp_path: Path) -> None:
    """It was opened, and nothing came of it yet."""
    (tmp_path / "tournament.db").touch()  # else an empty ledger does not stay
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


def test_a_log_that_follows_shows_what_is_appended(path: Path) -> None:
    """One watches a run from a second terminal, and leaves by Ctrl-C."""
    command = following(path, "ResponseGenerated", "--limit", "1")
    command.until(lambda: "ResponseGenerated" in command.out)
    with Ledger.open(path) as ledger:
        (response, *_) = responses(known(*opened()))
        news = [*opened(opening=2)[:1], replace(response, response_key=key("new"))]
        ledger.append(STREAM, news)
        last = ledger.head.position
    command.until(lambda: command.out.endswith("}\n"))
    done = command.interrupt()

    row = json.loads(done.out.splitlines()[-1])
    assert (row["position"], row["type"]) == (last, "ResponseGenerated")
    assert done.code == 130
    assert done.err.endswith(
        "interrupted: everything recorded so far is kept; run the same command again to continue\n"
    )


def test_a_log_that_follows_in_json_is_lines_from_the_beginning(path: Path) -> None:
    """Whoever parses it line by line must not meet a document first."""
    command = following(path, "--json", "--limit", "2")
    command.until(lambda: command.out.count("\n") == 2)
    rows = [json.loads(line) for line in command.interrupt().out.splitlines()]

    assert rows[1]["position"] == rows[0]["position"] + 1


def following(path: Path, *options: str) -> Running:
    """Follow a ledger's log in another process."""
    return begin(path.parent, ("log", "--follow", *options), os.environ)
