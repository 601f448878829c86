"""Interleaved rounds: what is compared is measured in turn, since disk and CPU drift."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


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
