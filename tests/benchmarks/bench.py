"""The workbench: a folder on the disk to measure, and how much is measured on it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.ledgers import fill
from tests.benchmarks.played import play

N_LONG: Final = 1_000_000  # events
N_LONG_BYTES: Final = 300  # of each stored payload


@dataclass(frozen=True)
class Bench:
    """What every benchmark is given."""

    folder: Path
    scale: float = 1.0  # 1.0: the sizes that are asked
    n_rounds: int = 5

    def scaled(self, size: int, *, at_least: int = 1) -> int:
        """Return the size to measure instead of one that is asked."""
        return max(at_least, round(size * self.scale))

    def long_ledger(self) -> Path:
        """Return a ledger of a million events; filled once, for all who read it."""
        path = self.folder / "long.ledger"
        if not path.exists():
            n_events = self.scaled(N_LONG)
            say(f"filling a ledger with {n_events:,} events of {N_LONG_BYTES} bytes")
            fill(path, n_events, N_LONG_BYTES)
        return path

    def played_ledger(self) -> Path:
        """Return a ledger of a tournament of a million events; played once, for all who read it."""
        path = self.folder / "played.ledger"
        if not path.exists():
            n_events = self.scaled(N_LONG)
            say(f"playing a tournament of {n_events:,} events")
            play(path, n_events)
        return path


def say(line: str) -> None:
    """Tell the progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
