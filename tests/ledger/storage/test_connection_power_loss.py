"""What is told of a ledger is on the disk: whenever the power is cut, it is there.

Real processes are recorded with the SQLite that Python brings, while some of them are killed.
`pytest -m nightly -rP tests/ledger/storage/test_connection_power_loss.py` plays the long rounds
and shows their figures.
"""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pytest

from tests.support.faults.power_loss import Losses
from tests.support.patience import PATIENCE_S

ROOT: Final = Path(__file__).parents[3]
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the power is only thought away

LEAST_KILLS: Final = {"undisturbed": 0, "kill": 100, "kill-read": 100}
"""The schedules, and how many processes are killed in the long rounds of each."""
UNSAFE: Final = ("no-flush-of-commits", "no-flush", "lying-disk")
N_STATES_BY_DAY: Final = 6  # of each round
N_ROUNDS_BY_NIGHT: Final = 60
N_STATES_BY_NIGHT: Final = 30  # of each round


def losses(
    *names: str, n_rounds: int, n_states: int, company: bool, seed: int = 0
) -> dict[str, Losses]:
    """Play rounds of these schedules in a process of their own, which forks."""
    is_there = _SHARED_MEMORY.is_dir()
    with TemporaryDirectory(dir=_SHARED_MEMORY if is_there else None) as folder:
        numbers = map(str, (seed, n_rounds, n_states, int(company)))
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.faults.power_rounds", folder, *numbers, *names],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
            timeout=PATIENCE_S * n_rounds,
        )
    sums: dict[str, Losses] = defaultdict(Losses)
    for line in done.stdout.splitlines():
        name, of_round = msgspec.json.decode(line, type=tuple[str, Losses])
        sums[name] += of_round
    return sums


def test_a_power_loss_loses_nothing_that_was_told() -> None:
    """Each verdict is paid for: what was said to be recorded is there when the power is back."""
    safe, unsafe = ("kill", "kill-read"), "no-flush-of-commits"

    found = losses(*safe, unsafe, n_rounds=1, n_states=N_STATES_BY_DAY, company=False, seed=4)

    everything = sum((found[name] for name in safe), Losses())
    assert everything.n_broken == 0, found
    assert everything.n_states == N_STATES_BY_DAY * len(safe)
    assert everything.n_kills > 1, found
    assert min(everything.n_moved, everything.n_promises) > 0, found
    assert found[unsafe].n_acknowledged_lost > 0, found


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEAST_KILLS)
def test_1_800_power_losses_and_many_kills_lose_nothing_that_was_told(name: str) -> None:
    """Three such schedules: 5,400 states, 200 kills. A ledger that is kept for years meets one."""
    found = losses(name, n_rounds=N_ROUNDS_BY_NIGHT, n_states=N_STATES_BY_NIGHT, company=True)[name]
    sys.stdout.write(f"{name}: {found}\n")

    assert found.n_broken == 0, found
    assert found.n_states == 1_800
    assert found.n_moved > 0
    assert found.n_kills >= LEAST_KILLS[name]


@pytest.mark.nightly
@pytest.mark.parametrize("name", UNSAFE)
def test_what_leaves_out_a_flush_is_found_out(name: str) -> None:
    """A proof that these tests would see a lost event, and a head that was told too early."""
    found = losses(name, n_rounds=8, n_states=N_STATES_BY_NIGHT, company=True)[name]
    sys.stdout.write(f"{name}: {found}\n")

    # Our readers flush the log before they tell of it, whatever its writer left out.
    assert found.n_heads_lost > 0 or name == "no-flush-of-commits"
    assert found.n_acknowledged_lost > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["no-flush", "lying-disk"])
def test_a_file_without_flushes_is_damaged(name: str) -> None:
    """A proof that these tests would see a damaged file."""
    assert losses(name, n_rounds=4, n_states=N_STATES_BY_NIGHT, company=True)[name].n_corrupt > 0
