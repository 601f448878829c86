"""Bad input ends in a clear error and its exit code, and the ledger is as it was."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from commands.settings.starting import lay_out_demo
from ledger.auditing.audit import audit
from ledger.storage import schema
from ledger.store import Ledger
from tests.support.builders.games import play
from tests.support.command_line.launching import Tourney, change, launch
from tests.support.command_line.settled import head_of
from tests.support.command_line.warm import begin
from tests.support.faults.holder import held_elsewhere

CONFIGURATION, FAILURE = 2, 1


class Case(NamedTuple):
    """How a tournament's folder is spoiled, and what is said about it."""

    spoil: Callable[[Path], object]
    exit_code: int
    said: tuple[str, ...]


def with_a_newer_format(folder: Path) -> None:
    """Make a ledger and say that a later tourney wrote it."""
    (folder / "tournament.db").touch()  # else an empty ledger does not stay
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.connection.execute("PRAGMA user_version = 99")


INTERRUPTED_WHILE_IMPORTING = """
import os, signal, sys

class Stop:
    def find_spec(self, name, *_):
        if name == "commands.cli.run":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs in the background
sys.meta_path.insert(0, Stop())
from commands.cli.app import main
main()
"""


def test_ctrl_c_in_the_first_moment_is_no_traceback() -> None:
    """The command is still being imported: nothing is lost, and nothing is to be reported."""
    words = [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING, "run"]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 130
    assert done.stderr.startswith("interrupted: everything recorded so far is kept")


CASES = {
    "unknown key": Case(
        lambda folder: change(folder / "tournament.toml", "permutations =", "permutation ="),
        CONFIGURATION,
        ("tournament.toml:", "unknown key 'elo.permutation'", "did you mean 'permutations'?"),
    ),
    "missing weights": Case(
        lambda folder: shutil.rmtree(folder / "weights"),
        CONFIGURATION,
        ("weights: there is no such folder of weights", "hf download"),
    ),
    "ledger of a newer format": Case(
        with_a_newer_format, FAILURE, ("has ledger format 99", "upgrade tourney")
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


def test_settings_with_a_secret_are_replaced_as_the_refusal_says(
    place: Path, tourney: Tourney
) -> None:
    """Whoever has just published a key has no time for a remedy that is none."""
    redact = ("redact", "1", "--why", "a key in extra_body", "--yes")
    opened = tourney("apply", "generate", "--limit", "0")
    refused = tourney(*redact)
    change(place / "tournament.toml", "k = 16", "k = 17")
    again = tourney("apply", "judge", "--limit", "0", "--allow-gaps")
    done = tourney(*redact)

    assert (opened.returncode, again.returncode, done.returncode) == (0, 0, 0), done.stderr
    assert "0 generated" in opened.stderr
    assert refused.returncode != 0
    assert "`tourney apply generate --limit 0`" in " ".join(refused.stderr.split())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Give the demo of recorded answers, which needs no weights."""
    lay_out_demo(tmp_path / "demo", weights=False)
    return tmp_path / "demo"


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv takes root's powers away")
def test_a_read_only_folder_is_refused(recorded: Path) -> None:
    """Where nothing can be recorded, nothing may be generated."""
    recorded.chmod(0o555)

    try:
        powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        done = launch(recorded, "run", prefix=powerless if os.getuid() == 0 else ())
    finally:
        recorded.chmod(0o755)

    assert done.returncode == FAILURE, done.stderr
    assert "cannot write tournament.db" in done.stderr
    assert not (recorded / "tournament.db").exists()


def test_a_full_disk_loses_nothing_that_was_recorded(recorded: Path) -> None:
    """The batch that does not fit is not recorded in part, and the run goes on from there."""
    generate = ("apply", "generate", "--limit", "4")
    assert launch(recorded, *generate).returncode == 0
    with Ledger.read_only(recorded / "tournament.db") as ledger:
        before = ledger.head
    room = 4 * schema.PAGE_BYTES  # of the log, too, which takes a page or more for each batch

    done = launch(recorded, "apply", "generate", room=room)

    assert done.returncode == FAILURE, done.stderr
    assert "cannot write tournament.db" in done.stderr
    with Ledger.read_only(recorded / "tournament.db") as ledger:
        assert audit(ledger) == ()
        assert ledger.head.position >= before.position
    assert launch(recorded, *generate).returncode == 0


def ledger_bytes(folder: Path) -> bytes | None:
    """Return the ledger's file, if there is one."""
    file = folder / "tournament.db"
    return file.read_bytes() if file.exists() else None


def test_a_second_command_waits_for_the_first_and_says_so(recorded: Path) -> None:
    """Started at once both would generate the same responses, and pay twice."""
    with held_elsewhere(recorded / "tournament.db.work") as first:
        second = begin(recorded, ("apply", "generate", "--limit", "1"), os.environ)
        second.until(lambda: bool(second.err))
        assert head_of(recorded / "tournament.db").position == 0
        first.kill()
        done = second.wait()

    told = f"waiting for process {first.pid} ({sys.executable} -m tests.support"
    assert done.err.startswith(told)
    assert done.code == 0, done.err
    assert "1 generated" in done.err


def test_readers_do_not_wait_for_a_run(tmp_path: Path) -> None:
    """Standings are looked at while a run goes on, for hours."""
    play(tmp_path / "tournament.db")

    with held_elsewhere(tmp_path / "tournament.db.work"):
        done = launch(tmp_path, "status")

    assert done.returncode == 0
    assert "waiting" not in done.stderr


@pytest.fixture
def on_a_network(place: Path, tmp_path: Path) -> Sequence[str]:
    """Give what runs a program to which the folder looks like one on a network.

    Linux tells each process its mounts in a file of its own, and a mount over that file is seen
    by this process alone.
    """
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/export {place} nfs4 rw 0 0\n")
    over = f'mount --bind {mounts} /proc/$$/mounts && exec "$@"'
    prefix = ("unshare", "-m" if os.getuid() == 0 else "-rm", "sh", "-c", over, "sh")
    command = [*prefix, "cat", "/proc/self/mounts"]
    try:
        seen = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        seen = ""
    if seen != mounts.read_text():
        pytest.skip("this system lets nobody mount over /proc")
    return prefix


def test_a_ledger_on_a_network_is_refused_unless_allowed(
    place: Path, on_a_network: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Locks that do not hold lose what was paid for; but there are some that hold.

    What the message says allows it, to a merge as well, which needs no settings.
    """
    play(tmp_path / "theirs.db")
    refused = launch(place, "apply", "generate", prefix=on_a_network)
    assert not (place / "tournament.db").exists()
    (place / "tournament.toml").unlink()
    monkeypatch.setenv("TOURNEY_NETWORK_LEDGER", "true")
    allowed = launch(place, "merge", str(tmp_path / "theirs.db"), prefix=on_a_network)

    assert refused.returncode == 2
    told = "is on a network file system, or on one that tourney does not know (nfs4)"
    assert told in refused.stderr
    assert "TOURNEY_NETWORK_LEDGER" in refused.stderr
    assert allowed.returncode == 0, allowed.stderr
