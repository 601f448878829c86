"""Verification: every hash of a million events done again."""

from collections.abc import Iterator

from ledger.audit import audit_chain
from ledger.store import Ledger
from tests.benchmarks.bench import Bench
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.row import Row, at_most, stated


def measure(bench: Bench) -> Iterator[Row]:
    """Time the audit of a whole chain, on all cores."""
    with Ledger.read_only(bench.long_ledger()) as ledger:
        head = ledger.head
        assert audit_chain(ledger, head) == ()
        rounds = interleaved(
            bench.n_rounds, {"chain": lambda: seconds(lambda: audit_chain(ledger, head))}
        )
    took_s = rounds.median("chain")
    name = f"verify the chain of {head.position:,} events of 300 B"
    yield stated(name, f"{took_s:.2f} s", took_s, at_most(2))
