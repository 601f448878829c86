"""Verification: every hash of a million events done again, and what they mean checked."""

from collections.abc import Iterator
from typing import Final

from commands.auditing.verify import verify
from commands.ports import no_progress
from ledger.store import Ledger
from tests.benchmarks.bench import Bench, say
from tests.benchmarks.ledger.tournaments import write_tournament
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Row, stated

_N_EVENTS: Final = 1_000_000


def measure(bench: Bench) -> Iterator[Row]:
    """Time the check of a tournament, whole."""
    path = bench.folder / "played.ledger"
    say("writing a tournament")
    write_tournament(path, bench.scaled(_N_EVENTS, at_least=200))
    with Ledger.read_only(path) as ledger:
        n_events = ledger.head.position
        assert verify(ledger, (), no_progress).faults == ()
        rounds = interleaved(
            bench.n_rounds, {"whole": lambda: seconds(lambda: verify(ledger, (), no_progress))}
        )
    took_s = rounds.median("whole")
    name = f"verify a tournament of {n_events:,} events, meaning included"
    yield stated(name, f"{took_s:.2f} s", took_s)
