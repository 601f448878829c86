"""How few prompts decide each gap of a leaderboard of 130: the time of all gaps together."""

from collections.abc import Iterator

from ledger.events.ratings import BradleyTerryParameters
from projections.ratings.fragility import fragility
from tests.benchmarks.bench import Bench
from tests.benchmarks.ratings.arena import by_popularity
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Row, at_most, stated


def measure(bench: Bench) -> Iterator[Row]:
    """Time an arena's battles, each on a prompt of its own."""
    battles = by_popularity(130, bench.scaled(100_000))
    parameters = BradleyTerryParameters()
    times = interleaved(
        bench.n_rounds, {"ours": lambda: seconds(lambda: fragility("arena", battles, parameters))}
    )
    took_s = times.median("ours")
    name = f"fragility of 130 x {len(battles):,}, all 129 gaps"
    yield stated(name, f"{took_s:.2f} s", took_s, at_most(1))
