"""Export, import and merge: what one machine recorded, taken in by another."""

import shutil
from pathlib import Path

import pytest

from commands.decisions.recorder import Recorder
from ledger.store import Ledger
from tests.builders import STREAM
from tests.commands.builders import P1, P2
from tests.commands.cli.conftest import Tourney
from tests.commands.cli.settled import fields, head_of
from tests.commands.games import CHANGE, forge, generated, judged


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with two ledgers that began as one: each judged another prompt."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        generated(Recorder(ledger, STREAM))
    shutil.copy(tmp_path / "tournament.db", tmp_path / "theirs.db")
    judge(tmp_path / "tournament.db", judged_first=True)
    judge(tmp_path / "theirs.db", judged_first=False)
    return tmp_path


def judge(path: Path, *, judged_first: bool) -> None:
    """Judge one of two prompts in a ledger."""
    with Ledger.open(path) as ledger:
        judged(Recorder(ledger, STREAM), [P1 if judged_first else P2])


def disagree(place: Path) -> None:
    """Let their judge have answered our queries, too, otherwise."""
    with Ledger.open(place / "theirs.db") as ledger:
        judged(Recorder(ledger, STREAM), [P1], lambda _: "VERDICT: TIE")


def test_an_export_is_the_same_to_a_file_and_to_a_pipe(place: Path, tourney: Tourney) -> None:
    """One is kept, the other goes through ssh; both are lines of JSON and nothing else."""
    piped = tourney("export", "events")

    done = tourney("export", "events", "-o", "events.jsonl")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (place / "events.jsonl").read_text() == piped.stdout
    assert len(piped.stdout.splitlines()) == head_of(place / "tournament.db").position + 2


def test_an_export_makes_the_same_ledger_elsewhere(place: Path, tourney: Tourney) -> None:
    """The same head: what was noted of one holds for the other."""
    tourney("export", "events", "-o", "events.jsonl")

    done = tourney("import", "events", "events.jsonl", "-l", "new.db", "--json")

    head = head_of(place / "tournament.db")
    assert done.returncode == 0, done.stderr
    assert fields(done)["n_new"] == head.position
    assert head_of(place / "new.db") == head


def test_an_export_as_of_earlier_is_the_beginning_of_it(place: Path, tourney: Tourney) -> None:
    """What was known then, and nothing that came after."""
    tourney("export", "events", "-o", "events.jsonl", "--as-of", "5")

    tourney("import", "events", "events.jsonl", "-l", "new.db")

    assert head_of(place / "new.db").position == 5


def test_a_damaged_ledger_is_not_handed_on(place: Path, tourney: Tourney) -> None:
    """Whoever gets it could no longer tell; what was exported before stays as it was."""
    (place / "events.jsonl").write_text("older")
    forge(place / "tournament.db", CHANGE("recorded_us = 0", 3))
    forge(place / "theirs.db", CHANGE("recorded_us = 0", 3))

    exported = tourney("export", "events", "-o", "events.jsonl")
    merged = tourney("merge", "theirs.db", "-l", "new.db")

    assert (exported.returncode, merged.returncode) == (8, 8)
    assert "tournament.db, position 3: its content is not" in " ".join(exported.stderr.split())
    assert "theirs.db, position 3: its content is not" in " ".join(merged.stderr.split())
    assert (place / "events.jsonl").read_text() == "older"


def test_a_merge_takes_in_what_is_new_once(tourney: Tourney) -> None:
    """The second time there is nothing left to do, and that is no failure."""
    first = tourney("merge", "theirs.db", "--json")
    again = tourney("merge", "theirs.db")

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert fields(first)["n_new"] == 5
    assert "0 events imported" in again.stdout
    assert tourney("verify").returncode == 0


def test_a_merge_that_contradicts_ours_is_done_with_gaps(place: Path, tourney: Tourney) -> None:
    """All that could be taken is; what was left lies with the user, who is told each."""
    disagree(place)

    done = tourney("merge", "theirs.db", "--json")

    found = fields(done)
    assert done.returncode == 6
    assert "2 events contradict this ledger, whose own were kept" in done.stderr
    assert (found["n_new"], found["n_left"]) == (5, 1)
    assert [row["type"] for row in found["rows"]] == ["VerdictReceived"] * 2
    assert tourney("verify").returncode == 0


def test_an_import_that_contradicts_ours_is_done_with_gaps(place: Path, tourney: Tourney) -> None:
    """A file does what the ledger would have done."""
    disagree(place)
    tourney("export", "events", "-l", "theirs.db", "-o", "theirs.jsonl")

    done = tourney("import", "events", "theirs.jsonl")

    assert done.returncode == 6
    assert "5 events imported" in done.stdout
    assert "2 conflicts, 1 outcome left out, to be reconciled again" in done.stdout


@pytest.mark.parametrize("spoil", ["cut", "changed", "empty", "something else"])
def test_a_broken_file_takes_nothing_in(place: Path, tourney: Tourney, spoil: str) -> None:
    """It was cut or changed on its way; half of it would pass for the whole."""
    text = tourney("export", "events", "-l", "theirs.db").stdout
    broken = {
        "cut": "".join(text.splitlines(keepends=True)[:-1]),
        "changed": text.replace("tuned on", "Tuned on", 1),
        "empty": "",
        "something else": "Dear diary,\n" * 3,
    }
    (place / "theirs.jsonl").write_text(broken[spoil])
    head = head_of(place / "tournament.db")

    done = tourney("import", "events", "theirs.jsonl")

    assert done.returncode == 1
    assert "export or download the file again" in " ".join(done.stderr.split())
    assert head_of(place / "tournament.db") == head


@pytest.mark.parametrize("words", ["import events none.jsonl", "import events .", "merge none.db"])
def test_a_missing_file_is_the_users_to_name(place: Path, tourney: Tourney, words: str) -> None:
    """Nothing is begun, not even an empty ledger."""
    done = tourney(*words.split(), "-l", "new.db")

    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "new.db").exists()


def test_a_ledger_is_not_merged_into_itself_twice(place: Path, tourney: Tourney) -> None:
    """A slip of the hand: everything is here already, and nothing waits for itself."""
    head = head_of(place / "tournament.db")

    done = tourney("merge", "tournament.db")

    assert done.returncode == 0, done.stderr
    assert head_of(place / "tournament.db") == head


def test_a_merge_of_a_file_that_is_no_ledger_is_refused(place: Path, tourney: Tourney) -> None:
    """It is somebody's diary."""
    (place / "diary.db").write_text("Dear diary, " * 100)

    done = tourney("merge", "diary.db")

    assert done.returncode == 1
    assert "diary.db is not a ledger" in done.stderr
