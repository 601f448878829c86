"""Typed replay: a million stored events become objects again."""

import math
from collections import deque
from collections.abc import Iterator
from functools import partial
from statistics import linear_regression
from typing import Final

from ledger.store import Ledger
from tests.benchmarks.bench import N_LONG, Bench
from tests.benchmarks.rounds import Rounds, interleaved, seconds
from tests.benchmarks.table import Row, at_least, at_most, per_second, stated

SIZES: Final = (N_LONG // 100, N_LONG // 10, N_LONG)


def measure(bench: Bench) -> Iterator[Row]:
    """Time reading of ever longer beginnings of a ledger."""
    sizes = [bench.scaled(size) for size in SIZES]
    with Ledger.read_only(bench.long_ledger()) as ledger:
        rounds = interleaved(
            bench.n_rounds, {str(size): partial(_seconds, ledger, size) for size in sizes}
        )
    rate = sizes[-1] / rounds.median(str(sizes[-1]))
    name = f"replay of {sizes[-1]:,} events of 300 B"
    yield stated(name, per_second(rate), rate, at_least(350_000))
    growth = _exponent(rounds, sizes)
    name = f"growth exponent of replay, {sizes[0]:,} to {sizes[-1]:,}"
    yield stated(name, f"{growth:.3f}", growth, at_most(1.05))


def _seconds(ledger: Ledger, n_events: int) -> float:
    return seconds(lambda: deque(ledger.read(until=n_events), maxlen=0))


def _exponent(rounds: Rounds, sizes: list[int]) -> float:
    """Return the slope of log time on log n: 1 where time grows as n does."""
    times = [math.log(rounds.median(str(size))) for size in sizes]
    return linear_regression([math.log(size) for size in sizes], times).slope
