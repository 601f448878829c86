"""Many writing processes on one ledger: how much is lost to waiting, and who waits longest."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import Final, NamedTuple

from ledger.errors import LedgerError
from tests.benchmarks.bench import Bench
from tests.benchmarks.ledger.rivals import ledger_appender
from tests.benchmarks.ledger.verdicts import Verdicts
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, compared, per_second, stated

N_PROCESSES: Final = 8
DURATION_S: Final = 5.0
N_BYTES: Final = 2_048
_NUMBERS_EACH: Final = 10_000_000  # keeps the processes' keys apart


class Tally(NamedTuple):
    """What one process did."""

    rate: float  # events per second
    longest_s: float  # the worst wait for one append
    n_errors: int


def measure(bench: Bench) -> Iterator[Row]:
    """Compare eight processes with one."""
    tallies: list[list[Tally]] = []
    numbers = count()

    def total_rate(n_processes: int) -> float:
        path = bench.folder / f"processes{next(numbers)}.ledger"
        tallies.append(_run(path, n_processes, DURATION_S * bench.scale))
        path.unlink()
        return sum(each.rate for each in tallies[-1])

    rounds = interleaved(
        bench.n_rounds,
        {"one": partial(total_rate, 1), "many": partial(total_rate, N_PROCESSES)},
    )
    yield compared(
        f"append of one 2 KB event from {N_PROCESSES} processes, together",
        per_second(rounds.median("many")),
        f"one process: {per_second(rounds.median('one'))}",
        rounds.ratio("many", "one"),
    )
    yield from _told([each for each in tallies if len(each) == N_PROCESSES])


def _told(tallies: list[list[Tally]]) -> Iterator[Row]:
    """Say what the processes met with in all rounds."""
    longest_s = max(tally.longest_s for each in tallies for tally in each)
    yield stated("its longest wait for one append", f"{longest_s:.3f} s", longest_s, at_most(1))
    n_errors = sum(tally.n_errors for each in tallies for tally in each)
    yield stated("its errors", str(n_errors), n_errors, at_most(0))
    spread = max(max(each).rate / min(each).rate for each in tallies)
    yield stated("its fastest process, to the slowest", f"{spread:.2f}", spread)


def _run(path: Path, n_processes: int, duration_s: float) -> list[Tally]:
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(n_processes, context) as pool:
        work = partial(_append_for, path, duration_s, manager.Barrier(n_processes))
        return list(pool.map(work, range(n_processes)))


def _append_for(path: Path, duration_s: float, gate: Barrier, number: int) -> Tally:
    """Append single events for a while, in a process of its own."""
    verdicts = Verdicts(N_BYTES, first=number * _NUMBERS_EACH)
    waits_s: list[float] = []
    n_errors = 0
    with ledger_appender(path) as append:
        append(verdicts.take(1))  # what is done once is no part of the wait for an append
        gate.wait()
        began = time.perf_counter()
        while not waits_s or time.perf_counter() < began + duration_s:
            tried = time.perf_counter()
            try:
                append(verdicts.take(1))
            except LedgerError:
                n_errors += 1
            waits_s.append(time.perf_counter() - tried)
        elapsed_s = time.perf_counter() - began
    return Tally((len(waits_s) - n_errors) / elapsed_s, max(waits_s), n_errors)
