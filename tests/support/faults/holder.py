"""Hold a lock until the input ends: `python -m tests.support.faults.holder PATH`."""

import sys
from pathlib import Path

from ledger.storage.lock import FileLock


def hold(path: Path) -> None:
    """Hold the lock, say so, and wait."""
    with FileLock(path).held():
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    hold(Path(sys.argv[1]))
