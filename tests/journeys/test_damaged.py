"""A damaged ledger is told as such by every command that reads it: no traceback, and no hang."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ledger.exchange import read_export
from ledger.store import Ledger
from tests.support.command_line.warm import Ended, begin
from tests.support.faults.damage import damage
from tests.support.goldens.ledgers import PUBLISHED

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
HANGS_AFTER_S: Final = 60.0  # of what takes a tenth of a second
TOLD: Final = frozenset({0, 1, 2, 6, 8})


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file of a tournament that published two runs."""
    path = tmp_path_factory.mktemp("sound") / "tournament.db"
    with Ledger.open(path) as ledger, ledger.writing() as writer:
        for row in read_export(PUBLISHED.read_bytes().splitlines(keepends=True)):
            writer.merge(row)
    return path


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


def faults_of(folder: Path) -> Iterator[str]:
    """Yield what the commands should not have said of a damaged ledger."""
    for words in COMMANDS:
        done = ended(folder, words)
        said = done.err.strip().splitlines()
        errors = [line for line in said if line.startswith("error:")]
        if (
            done.code not in TOLD
            or "Traceback" in done.err
            or len(errors) != (done.code in {1, 2, 8})
        ):
            yield f"{' '.join(words)}: {done.code}, {said[-3:]}"


@pytest.mark.parametrize("seed", range(int(os.environ.get("N", "24"))))
def test_every_command_that_reads_a_damaged_ledger_says_so_in_a_line(
    seed: int, sound: Path, tmp_path: Path
) -> None:
    """Whoever reads it must learn that a backup is needed, and not look for a bug."""
    path = tmp_path / "tournament.db"
    shutil.copy(sound, path)
    how = damage(path, seed)

    assert not [f"{how} {each}" for each in faults_of(tmp_path)]
