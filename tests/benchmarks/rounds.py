"""Interleaved rounds: what is compared is measured in turn, since disk and CPU drift."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias, TypeVar

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
