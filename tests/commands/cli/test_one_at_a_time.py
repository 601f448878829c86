"""Two commands on one ledger: the second waits, and says for whom."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.cli.conftest import Tourney, launch
from tests.commands.cli.settled import ROOT, head_of
from tests.commands.cli.warm import begin
from tests.commands.games import play


@contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a lock until its input ends, or the block."""
    command = [sys.executable, "-m", "tests.ledger.holder", str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_command_waits_for_the_first_and_says_so(place: Path) -> None:
    """Started at once both would generate the same responses, and pay twice."""
    with held_elsewhere(place / "tournament.db.work") as first:
        second = begin(place, ("apply", "generate", "--limit", "1"), os.environ)
        second.until(lambda: bool(second.err))
        assert head_of(place / "tournament.db").position == 0
        first.kill()
        done = second.wait()

    told = f"waiting for process {first.pid} ({sys.executable} -m tests.ledger"
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


def test_a_ledger_on_a_network_is_refused(place: Path, on_a_network: Sequence[str]) -> None:
    """Before anything is generated: locks that do not hold lose what was paid for."""
    done = launch(place, "apply", "generate", prefix=on_a_network)

    assert done.returncode == 2
    assert "is on a network file system (nfs4)" in done.stderr
    assert not (place / "tournament.db").exists()


def test_a_ledger_on_a_network_may_be_allowed(
    place: Path, on_a_network: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are network file systems whose locks hold, and their users know."""
    monkeypatch.setenv("TOURNEY_TOURNAMENT_NETWORK_LEDGER", "true")

    done = launch(place, "apply", "judge", prefix=on_a_network)

    assert done.returncode == 0, done.stderr
    assert head_of(place / "tournament.db").position > 0


def test_a_ledger_on_a_network_may_be_read(place: Path, on_a_network: Sequence[str]) -> None:
    """A copy that lies there for others does no harm."""
    play(place / "tournament.db")

    done = launch(place, "verify", prefix=on_a_network)

    assert done.returncode == 0, done.stderr


def test_the_message_says_what_does_allow_it(
    place: Path, on_a_network: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A merge needs no settings, so the variable alone must be enough."""
    play(tmp_path / "theirs.db")
    (place / "tournament.toml").unlink()
    monkeypatch.setenv("TOURNEY_TOURNAMENT_NETWORK_LEDGER", "true")

    done = launch(place, "merge", str(tmp_path / "theirs.db"), prefix=on_a_network)

    assert done.returncode == 0, done.stderr


def test_doctor_finds_a_network_and_the_machine_unready(
    place: Path, tourney: Tourney, on_a_network: Sequence[str]
) -> None:
    """Known before the first run, it costs nothing."""
    refused = launch(place, "doctor", prefix=on_a_network)

    assert refused.returncode == 1
    assert "not ready: file system" in refused.stderr
    assert "nfs4: keep the ledger on a local disk" in refused.stdout
    assert tourney("doctor").returncode == 0
