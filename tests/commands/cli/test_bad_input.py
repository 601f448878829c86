"""Bad input ends in a clear error and the right exit code, and the ledger is as it was."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ledger.audit import audit
from ledger.store import Ledger
from tests.commands.cli.conftest import Tourney, launch

CONFIGURATION, FAILURE = 2, 1


class Case(NamedTuple):
    """How a tournament's folder is spoiled, and what is said about it."""

    spoil: Callable[[Path], object]
    exit_code: int
    said: tuple[str, ...]


def replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    """Return what replaces the first occurrence of a text in a file."""

    def spoil(folder: Path) -> None:
        file = folder / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    return spoil


def with_a_newer_format(folder: Path) -> None:
    """Make a ledger and say that a later tourney wrote it."""
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.connection.execute("PRAGMA user_version = 99")


def with_an_adapter_of_other_weights(folder: Path) -> None:
    """Put the header of another layer's shard in the place of one."""
    file = folder / "hydra" / "security" / "shard_0" / "adapter_model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"layers.4.", b"layers.3."))


CASES = {
    "unknown key": Case(
        replaced("tournament.toml", "permutations = 500", "permutation = 500"),
        CONFIGURATION,
        ("tournament.toml:", "unknown key 'elo.permutation'", "did you mean 'permutations'?"),
    ),
    "duplicate prompt id": Case(
        replaced("bank.jsonl", '"recall_002"', '"recall_001"'),
        CONFIGURATION,
        ("bank.jsonl:2", "'recall_001' is taken by line 1"),
    ),
    "bank line that is not JSON": Case(
        replaced("bank.jsonl", '{"prompt_id": "recall_003"', '"prompt_id": "recall_003"'),
        CONFIGURATION,
        ("bank.jsonl:3: not JSON",),
    ),
    "rubric without a version": Case(
        replaced("rubrics/factuality.md", "<!-- version: 1 -->", "# Factuality"),
        CONFIGURATION,
        ("factuality.md:1", "<!-- version: 1 -->"),
    ),
    "missing weights": Case(
        lambda folder: shutil.rmtree(folder / "weights"),
        CONFIGURATION,
        ("weights: there is no such folder of weights", "hf download"),
    ),
    "adapter that does not fit": Case(
        with_an_adapter_of_other_weights,
        CONFIGURATION,
        ("security/shard_0: it has LoRA tensors outside", "layers.3."),
    ),
    "ledger of a newer format": Case(
        with_a_newer_format, FAILURE, ("has ledger format 99", "upgrade tourney")
    ),
    "a file that is no ledger": Case(
        lambda folder: (folder / "tournament.db").write_text("Dear diary, " * 100),
        FAILURE,
        ("tournament.db is not a ledger",),
    ),
    "a database of another program": Case(
        lambda folder: sqlite3.connect(folder / "tournament.db").execute("CREATE TABLE x (y)"),
        FAILURE,
        ("tournament.db is not a ledger",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input_is_named_and_nothing_is_recorded(
    case: Case, place: Path, tourney: Tourney
) -> None:
    """A user must learn what is wrong and where, with the ledger untouched."""
    case.spoil(place)
    before = ledger_bytes(place)

    done = tourney("run")

    assert done.returncode == case.exit_code, done.stderr
    assert not [words for words in case.said if words not in " ".join(done.stderr.split())]
    assert "Traceback" not in done.stderr
    assert ledger_bytes(place) == before


def test_every_fault_of_the_settings_is_said_at_once(place: Path, tourney: Tourney) -> None:
    """Correcting one fault a run, over and over, wastes a user's day."""
    replaced("tournament.toml", "permutations = 500", "permutation = 500")(place)
    replaced("tournament.toml", "tie_band = 1.0", "tie_band = -1")(place)

    done = tourney("plan", "generate")

    assert done.returncode == CONFIGURATION
    assert "elo.permutation" in done.stderr
    assert "judge.tie_band" in done.stderr


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv takes root's powers away")
def test_a_read_only_folder_is_refused(place: Path) -> None:
    """Where nothing can be recorded, nothing may be generated."""
    place.chmod(0o555)

    try:
        powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        done = launch(place, "run", prefix=powerless if os.getuid() == 0 else ())
    finally:
        place.chmod(0o755)

    assert done.returncode == FAILURE, done.stderr
    assert "cannot write tournament.db" in done.stderr
    assert not (place / "tournament.db").exists()


def test_a_full_disk_loses_nothing_that_was_recorded(place: Path, tourney: Tourney) -> None:
    """The batch that does not fit is not recorded in part, and the run goes on from there."""
    assert tourney("apply", "generate", "--limit", "4").returncode == 0
    with Ledger.read_only(place / "tournament.db") as ledger:
        before = ledger.head
    room = (place / "tournament.db").stat().st_size + 4096

    done = launch(place, "apply", "generate", room=room)

    assert done.returncode == FAILURE, done.stderr
    assert "cannot write tournament.db" in done.stderr
    with Ledger.read_only(place / "tournament.db") as ledger:
        assert audit(ledger) == ()
        assert ledger.head.position >= before.position
    assert tourney("apply", "generate", "--limit", "4").returncode == 0


def ledger_bytes(folder: Path) -> bytes | None:
    """Return the ledger's file, if there is one."""
    file = folder / "tournament.db"
    return file.read_bytes() if file.exists() else None
