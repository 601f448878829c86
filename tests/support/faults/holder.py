"""Hold a lock in a process of its own: `python -m tests.support.faults.holder PATH`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledger.storage.lock import FileLock

_ROOT: Final = Path(__file__).parents[3]


@contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a lock until its input ends, or the block."""
    command = [sys.executable, "-m", "tests.support.faults.holder", str(path)]
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def hold(path: Path) -> None:
    """Hold the lock, say so, and wait."""
    with FileLock(path):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    hold(Path(sys.argv[1]))
