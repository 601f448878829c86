"""Interleaved rounds: what is compared is measured in turn, since disk and CPU drift.

The flush rate of the disk is measured beside it: it bounds durable appends.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias, TypeVar

Item = TypeVar("Item")
Append: TypeAlias = Callable[[Sequence[Item]], None]
"""Appends a batch; on return it is on the disk."""


@dataclass(frozen=True)
class Rounds:
    """What each contender measured, one number a round."""

    measured: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        """Return the middle one of a contender's numbers."""
        return median(self.measured[name])

    def ratio(self, name: str, baseline: str) -> float:
        """Return the middle one of the ratios within a round."""
        pairs = zip(self.measured[name], self.measured[baseline], strict=True)
        return median(mine / other for mine, other in pairs)


def interleaved(n_rounds: int, contenders: Mapping[str, Callable[[], float]]) -> Rounds:
    """Let every contender measure in every round, after one round that warms up."""
    rounds = [
        {name: measure() for name, measure in contenders.items()} for _ in range(n_rounds + 1)
    ]
    return Rounds({name: [each[name] for each in rounds[1:]] for name in contenders})


def rate(append: Append[Item], batches: Sequence[Sequence[Item]]) -> float:
    """Append batches, one durable after the other; return items per second."""
    n_items = sum(map(len, batches))
    began = time.perf_counter()
    for batch in batches:
        append(batch)
    return n_items / (time.perf_counter() - began)


def seconds(act: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def cpu_seconds(act: Callable[[], object]) -> float:
    """Return how long the processor works on something, in all threads."""
    began = time.process_time()
    act()
    return time.process_time() - began


_BLOCK: Final = bytes(4096)


def flush_rate(folder: Path, n_flushes: int) -> float:
    """Append 4 KiB at a time, and wait for the disk; return flushes per second, as `rate` does."""
    path = folder / "flushes"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return rate(partial(_flush, file), [[_BLOCK]] * n_flushes)
    finally:
        os.close(file)
        path.unlink()


def _flush(file: int, blocks: Sequence[bytes]) -> None:
    os.writev(file, blocks)
    os.fdatasync(file)
