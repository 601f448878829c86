"""Checkpoint, verify against one, back up: what proves a ledger, and a copy of it."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.builders import STREAM, key, opened, verdict
from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import fields, head_of
from tests.commands.games import CHANGE, DELETE, forge, play


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


def test_a_checkpoint_is_one_line_to_be_kept(path: Path, tourney: Tourney) -> None:
    """It is copied into a mail or a lab book, so nothing stands around it."""
    done = tourney("checkpoint")

    assert (done.returncode, done.stdout) == (0, f"{head_of(path)}\n")


def test_a_checkpoint_for_programs_has_its_parts(path: Path, tourney: Tourney) -> None:
    """A script stores position and digest apart."""
    head = head_of(path)

    found = fields(tourney("checkpoint", "--json"))

    assert found["schema"] == "tourney/checkpoint@1"
    assert (found["position"], found["chain"]) == (head.position, head.chain)
    assert found["checkpoint"] == str(head)


def test_a_checkpoint_of_earlier_names_what_was_there_then(path: Path, tourney: Tourney) -> None:
    """Somebody asks what was known when a paper was sent; before the first event, nothing."""
    with Ledger.read_only(path) as ledger:
        chain = ledger.chain_at(5)

    assert tourney("checkpoint", "--as-of", "5").stdout == f"{chain}@5\n"
    assert tourney("checkpoint", "--as-of", "0").stdout == f"{'0' * 64}@0\n"


def test_verify_says_what_it_looked_at(path: Path, tourney: Tourney) -> None:
    """Silence could mean that nothing was checked."""
    head = head_of(path)

    done = tourney("verify")

    said = f"{head.position} events, 1 published run checked: 0 faults, checkpoint {head}\n"
    assert (done.returncode, done.stdout) == (0, said)


def test_a_checkpoint_that_fits_is_no_fault(path: Path, tourney: Tourney) -> None:
    """Spelt out, in a file, and in the manifest of a run; the ledger has grown since."""
    note = path.parent / "note.txt"
    note.write_text(tourney("checkpoint").stdout)
    (run,) = (path.parent / "runs").iterdir()
    noted = head_of(path)
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, opened(opening=2)[:1])

    done = tourney(
        "verify",
        *("--checkpoint", str(noted)),
        *("--checkpoint", str(note)),
        *("--checkpoint", str(run / "manifest.json")),
    )

    assert done.returncode == 0, done.stdout
    assert fields(tourney("verify", "--json"))["rows"] == []


def test_a_ledger_that_was_cut_does_not_pass(path: Path, tourney: Tourney) -> None:
    """What is left is sound in itself, so only a checkpoint can tell."""
    noted = head_of(path)
    forge(path, DELETE(noted.position))

    without, compared = tourney("verify"), tourney("verify", "--checkpoint", str(noted), "--json")

    assert without.returncode == 0
    assert compared.returncode == 8
    (row,) = fields(compared)["rows"]
    assert row["position"] == noted.position - 1
    assert f"before the kept head {noted}: " in row["why"]
    assert "1 fault in tournament.db" in compared.stderr


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        ("garbage", "'garbage' is not a head hash"),
        (f"{key('x')}@", "is not a head hash"),
        ("tournament.db", "tournament.db: it holds no head hash"),
    ],
)
def test_what_is_no_checkpoint_is_refused(path: Path, checkpoint: str, said: str) -> None:
    """Passed over, a mistyped name would let any ledger pass."""
    done = launch(path.parent, "verify", "--checkpoint", checkpoint)

    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_an_event_that_cannot_be_read_is_a_fault_and_no_failure(
    path: Path, tourney: Tourney
) -> None:
    """Exit 8 says that the audit was done and does not agree; 1 would say that it was not."""
    forge(path, CHANGE("type = 'PairSettled'", 3))

    done = tourney("verify")

    assert done.returncode == 8
    assert "unknown event type 'PairSettled'" in done.stdout


def test_a_claim_that_does_not_follow_is_a_fault(path: Path, tourney: Tourney) -> None:
    """The chain is whole, and the audit does not agree all the same."""
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, [verdict(key("a query that nobody put"))])

    done = tourney("verify")

    assert done.returncode == 8
    assert "which was not submitted before it" in done.stdout


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
    assert f"{left.name} is left by an unfinished backup" in " ".join(done.stderr.split())


@pytest.mark.parametrize("to", ["tournament.db", "missing/copy.db"])
def test_a_backup_never_overwrites(path: Path, tourney: Tourney, to: str) -> None:
    """What lies there may be the only good copy."""
    head = head_of(path)

    done = tourney("backup", to)

    assert done.returncode == 1
    assert f"cannot write {to}" in done.stderr
    assert head_of(path) == head


@pytest.mark.parametrize("command", ["checkpoint", "verify", "status", "export events"])
def test_where_no_ledger_is_a_reader_says_so(tmp_path: Path, command: str) -> None:
    """A mistyped place is the user's to put right, and must not be created by reading it."""
    done = launch(tmp_path, *command.split(), "-l", "none.db")

    assert done.returncode == 2
    assert "there is no ledger at none.db" in done.stderr
    assert list(tmp_path.iterdir()) == []
