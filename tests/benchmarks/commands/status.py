"""`tourney status` from a cold start, on a tournament of a million events."""

from collections.abc import Iterator

from tests.benchmarks.bench import Bench
from tests.benchmarks.commands.alone import alone, tourney
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row, at_most, stated


def measure(bench: Bench) -> Iterator[Row]:
    """Time the whole command."""
    command = tourney("status", "--ledger", str(bench.played_ledger()))
    times = interleaved(bench.n_rounds, {"status": lambda: alone(command, bench.folder).took_s})
    took_s = times.median("status")
    name = f"`tourney status` on {bench.scaled(1_000_000):,} events, from a cold start"
    yield stated(name, f"{took_s:.2f} s", took_s, at_most(1))
