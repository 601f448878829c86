"""Processes that share a tournament's work leave what one process would leave."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.command_line.killing import held_by
from tests.support.command_line.launching import Tourney
from tests.support.patience import wait_until

TOURNEY = str(Path(sysconfig.get_path("scripts")) / "tourney")


@pytest.fixture
def expected(tourney: Tourney, place: Path) -> dict[str, str]:
    """Give the responses of one process, whose ledger is gone."""
    assert tourney("apply", "generate").returncode == 0
    found = held_by(place / "tournament.db").responses
    for each in place.glob("tournament.db*"):
        each.unlink()
    return found


INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from commands.cli.app import main
main()
"""


@pytest.mark.nightly
def test_ctrl_c_ends_ray_and_one_process_goes_on(place: Path, expected: dict[str, str]) -> None:
    """It reaches all processes of Ray; none of them stays, and no file of theirs."""
    with TemporaryDirectory(prefix="t-", dir="/tmp") as name:  # as short as Ray's sockets want
        own, home = Path(name), place.parent / "home"
        home.mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", INTERRUPTIBLE, "apply", "generate"],
            cwd=place,
            env=os.environ | {"TOURNEY_ENGINE": "ray", "TMPDIR": name, "HOME": str(home)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stderr
            said = [next(line for line in process.stderr if begun(line))]
            os.killpg(process.pid, signal.SIGINT)
            said += process.stderr
        wait_until(lambda: not any(name in command for command in commands()))

        assert process.returncode == 130, said
        assert said[-1].startswith("interrupted: everything recorded so far is kept")
        assert not [each.name for each in own.iterdir() if each.name.startswith("ray")]
        assert not [*home.iterdir()]

    n_before = len(held_by(place / "tournament.db").responses)
    assert subprocess.run([TOURNEY, "apply", "generate"], cwd=place, check=False).returncode == 0
    assert 0 < n_before < len(expected)
    held = held_by(place / "tournament.db")
    assert held.responses == expected
    assert held.n_by_type["ResponseGenerated"] == len(expected)


def begun(line: str) -> bool:
    """Say whether a line of progress tells of a response."""
    return line.startswith("responses: ") and not line.startswith("responses: 0 ")


def commands() -> list[str]:
    """Return the command lines of all processes."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_text(errors="replace"))
        except OSError:  # it has ended
            continue
    return found
