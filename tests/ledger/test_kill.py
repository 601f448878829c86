"""kill -9 in the middle of appends."""

import subprocess
import sys
import time
from pathlib import Path

from ledger.audit import audit
from ledger.store import Ledger
from tests.ledger.appender import BATCH

ROOT = Path(__file__).parents[2]
KILL_AFTER_S = (0.0, 0.002, 0.005, 0.011, 0.017, 0.031, 0.05)  # after the first batch


def start_appending(path: Path) -> subprocess.Popen[str]:
    """Start a process that appends for ever."""
    command = [sys.executable, "-m", "tests.ledger.appender", str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def append_and_kill(path: Path, delay_s: float) -> list[tuple[int, str]]:
    """Kill an appending process after its first batch; return the places it acknowledged."""
    with start_appending(path) as process:
        assert process.stdout
        first = process.stdout.readline()
        time.sleep(delay_s)
        process.kill()
        said = first + process.stdout.read()
    lines = (line.split() for line in said.splitlines())
    return [(int(position), chain) for position, chain in lines]


def test_kill_9_loses_no_acknowledged_event(path: Path) -> None:
    """Each verdict is paid for: what was said to be recorded is there when the run resumes."""
    for delay_s in KILL_AFTER_S:
        acknowledged = append_and_kill(path, delay_s)

        with Ledger.open(path) as ledger:
            chain = {each.position: each.chain for each in ledger.read()}
            faults = list(audit(ledger.rows()))

        assert faults == []
        assert len(chain) % BATCH == 0, "half a batch was recorded"
        assert [chain[position] for position, _ in acknowledged] == [at for _, at in acknowledged]


def test_another_process_reads_while_one_appends(path: Path) -> None:
    """Standings are looked at while the run goes on; each look is a whole history."""
    with start_appending(path) as process:
        assert process.stdout
        process.stdout.readline()

        with Ledger.read_only(path) as ledger:
            looks = [list(audit(ledger.rows())) for _ in range(5)]
            n_events = ledger.head.position
        still_appending = process.poll() is None
        process.kill()

    assert looks == [[]] * 5
    assert n_events >= BATCH
    assert still_appending
