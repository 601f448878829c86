"""Several processes that share a tournament's work leave what one process would leave."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.command_line.killing import held_by
from tests.support.command_line.launching import Tourney
from tests.support.patience import PATIENCE_S

TOURNEY = str(Path(sysconfig.get_path("scripts")) / "tourney")
# What `accelerate launch` runs on several GPUs; by itself it starts several processes on no CPU.
TWO = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


@pytest.fixture
def expected(tourney: Tourney, place: Path) -> dict[str, str]:
    """Give the responses of one process, whose ledger is gone."""
    assert tourney("apply", "generate").returncode == 0
    found = held_by(place / "tournament.db").responses
    for each in place.glob("tournament.db*"):
        each.unlink()
    return found


def test_two_processes_generate_what_one_does(place: Path, expected: dict[str, str]) -> None:
    """The first alone writes; a second command finds nothing to do, and ends all the same."""
    for missing in (32, 0):
        done = subprocess.run(
            [*TWO, TOURNEY, "apply", "generate"],
            cwd=place,
            env=os.environ | {"TOURNEY_GENERATION_BATCH_TOKENS": "200"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        assert f"{missing} responses were missing: {missing} generated" in done.stderr

    held = held_by(place / "tournament.db")
    assert held.responses == expected
    assert held.n_by_type["ResponseGenerated"] == len(expected)
