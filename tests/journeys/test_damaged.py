"""A damaged ledger is told as such by every command that reads it: no traceback, and no hang."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from ledger.storage.schema import FORMAT
from tests.support.command_line.warm import Ended, begin
from tests.support.faults.damage import damage, hide, zero_a_row
from tests.support.faults.hostile import tamper
from tests.support.goldens.ledger_files import golden, unpack

COMMANDS: Final = (
    ("verify",),
    ("project", "elo"),
    ("project", "bt"),
    ("report", "-o", "report.html"),
    ("status",),
    ("doctor",),
    ("backup", "copy.db"),
    ("replay",),
    ("log", "--limit", "20"),
    ("export", "events", "-o", "events.jsonl"),
    ("project", "winrates"),
    ("project", "spend"),
    ("sql", "select count(*), max(winner), max(reply) from verdicts"),
)
SAYS_GOOD: Final = frozenset({"doctor", "backup"})  # if it ends well
HANGS_AFTER_S: Final = 60.0  # of what takes a tenth of a second
TOLD: Final = frozenset({0, 1, 8})
BY_DAY, BY_NIGHT = (0, 250), range(500)  # seeds


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the ledger of a tournament that was run and published."""
    return unpack(golden(FORMAT), tmp_path_factory.mktemp("sound") / "tournament.db")


def ended(folder: Path, words: tuple[str, ...]) -> Ended:
    """Run a command to its end, or until it hangs."""
    running = begin(folder, words, os.environ)
    until = time.monotonic() + HANGS_AFTER_S
    while not running.has_ended:
        if time.monotonic() > until:
            running.kill()
            pytest.fail(f"tourney {' '.join(words)} does not end")
        time.sleep(0.005)
    return running.wait()


def ill_told(folder: Path) -> Iterator[str]:
    """Yield the commands that do not end in one line of error, or in none."""
    for words in COMMANDS:
        done = ended(folder, words)
        said = done.err.strip().splitlines()
        errors = [line for line in said if line.startswith("error:")]
        is_told = len(errors) == 1 and said[-1:] == errors if done.code else not errors
        if done.code not in TOLD or not is_told:
            yield f"{' '.join(words)}: {done.code}, {said[-3:]}"
        if words[0] in SAYS_GOOD and done.code == 0 and ended(folder, ("verify",)).code:
            yield f"{' '.join(words)} calls a damaged ledger good"


@pytest.mark.parametrize("seeds", [BY_DAY, pytest.param(BY_NIGHT, marks=pytest.mark.nightly)])
def test_every_command_that_reads_a_damaged_ledger_ends_in_a_line(
    seeds: Sequence[int], sound: Path, tmp_path: Path
) -> None:
    """Whoever reads it must learn that a backup is needed, and not look for a bug."""
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = folder / "tournament.db"
        shutil.copy(sound, path)
        how = damage(path, seed)

        assert not [f"seed {seed}, {how}: {each}" for each in ill_told(folder)]

        shutil.rmtree(folder)


def test_a_ledger_that_was_cut_is_told_to_be_damaged(sound: Path, tmp_path: Path) -> None:
    """A download that broke off is no file of another program, and no matter of permissions."""
    path = tmp_path / "tournament.db"
    content = sound.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    done = ended(tmp_path, ("status",))

    assert (done.code, done.err) == (
        1,
        "error: tournament.db is damaged: database disk image is malformed; restore a backup\n",
    )


def test_a_copy_of_a_damaged_ledger_is_told_to_be_one(sound: Path, tmp_path: Path) -> None:
    """A script that removes yesterday's copy then must learn that today's is worth nothing."""
    path = tmp_path / "tournament.db"
    shutil.copy(sound, path)
    tamper(path, "UPDATE event SET data = zeroblob(length(data)) WHERE position = 5")

    done = ended(tmp_path, ("backup", "copy.db"))
    ready = ended(tmp_path, ("doctor",))

    assert done.code == 8
    assert "copy.db, position 5: its content is not what was recorded" in done.err
    assert "position 5: its content is not what was recorded" in " ".join(ready.out.split())


def test_verify_ends_where_the_beginning_of_a_row_is_zero(sound: Path, tmp_path: Path) -> None:
    """Its position is read as 0, so whoever goes on after it begins again, for ever."""
    path = tmp_path / "tournament.db"
    shutil.copy(sound, path)
    zero_a_row(path, position=9)

    done = ended(tmp_path, ("verify",))

    assert done.code == 8
    assert "positions do not increase" in done.out


@pytest.mark.parametrize(
    ("index", "words"), [("type_in_stream", ("project", "elo")), ("stream_began", ("report",))]
)
def test_what_an_index_hides_is_not_said_to_be_missing(
    index: str, words: tuple[str, ...], sound: Path, tmp_path: Path
) -> None:
    """Whoever reads that there is no tournament would run and pay for it again.

    Each event is there, and so is its hash: verify and doctor name what leads to it no more.
    """
    shutil.copy(sound, tmp_path / "tournament.db")
    hide(tmp_path / "tournament.db", index)

    done, verified, ready = (ended(tmp_path, each) for each in (words, ("verify",), ("doctor",)))

    assert done.code == 1
    assert done.err.startswith("error: tournament.db is damaged: ")
    for code, told in ((8, verified), (1, ready)):
        assert told.code == code
        assert f"missing from index {index}" in told.out
