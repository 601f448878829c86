"""The workbench: a folder on a disk, and how much is measured on it."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bench:
    """What every benchmark is given."""

    folder: Path
    scale: float = 1.0  # 1.0: the sizes that are asked
    n_rounds: int = 5

    def scaled(self, size: int, *, at_least: int = 1) -> int:
        """Return the size to measure instead of one that is asked."""
        return max(at_least, round(size * self.scale))


def say(line: str) -> None:
    """Tell the progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
