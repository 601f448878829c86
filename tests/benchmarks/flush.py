"""The flush rate F: how often the disk can be waited for, which bounds durable appends."""

import os
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from tests.benchmarks.rounds import seconds

_BLOCK: Final = bytes(4096)


def flush_rate(folder: Path, n_flushes: int) -> float:
    """Return 1 / the median time of appending 4 KiB and waiting for the disk."""
    path = folder / "flushes"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return 1 / median(seconds(partial(_flush, file)) for _ in range(n_flushes))
    finally:
        os.close(file)
        path.unlink()


def _flush(file: int) -> None:
    os.write(file, _BLOCK)
    os.fdatasync(file)
