"""Group commit: threads that each wait for a receipt of their own share flushes."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ledger.store import Ledger
from tests.benchmarks.bench import Bench
from tests.benchmarks.ledger.rivals import appender
from tests.benchmarks.ledger.verdicts import Fields, Verdicts
from tests.benchmarks.rounds import Append, interleaved, rate
from tests.benchmarks.table import Row, at_least, compared, per_second

N_WAITERS: Final = 64
N_EVENTS: Final = 1_000  # a round; of each waiter a tenth of it
N_BYTES: Final = 2_048


def measure(bench: Bench) -> Iterator[Row]:
    """Compare many who wait with one."""
    n, verdicts = bench.scaled(N_EVENTS), Verdicts(N_BYTES)
    n_each = bench.scaled(N_EVENTS // 10)
    with Ledger.open(bench.folder / "group.ledger") as ledger:
        append = appender(ledger)

        def shares() -> list[list[list[Fields]]]:
            return [verdicts.batches(n_each, 1) for _ in range(N_WAITERS)]

        rounds = interleaved(
            bench.n_rounds,
            {
                "one": lambda: rate(append, verdicts.batches(n, 1)),
                "threads": lambda: _rate_of_threads(append, shares()),
            },
        )
    yield compared(
        f"the same from {N_WAITERS} threads that share flushes",
        per_second(rounds.median("threads")),
        f"one thread: {per_second(rounds.median('one'))}",
        rounds.ratio("threads", "one"),
        at_least(4),
    )


def _rate_of_threads(append: Append[Fields], shares: list[list[list[Fields]]]) -> float:
    """Append each thread's batches, all threads at once; return events per second."""
    opened: list[float] = []  # when the last thread was ready
    gate = threading.Barrier(len(shares), action=lambda: opened.append(time.perf_counter()))

    def work(batches: list[list[Fields]]) -> float:
        gate.wait()
        rate(append, batches)
        return time.perf_counter()

    with ThreadPoolExecutor(len(shares)) as pool:
        finished = max(pool.map(work, shares))
    return sum(map(len, shares)) / (finished - opened[0])
