"""Verification: every hash of a million events done again, and what they mean checked."""

from collections.abc import Iterator

from commands.auditing.verify import verify
from commands.ports import no_progress
from ledger.store import Ledger
from tests.benchmarks.bench import Bench
from tests.benchmarks.rounds import interleaved, seconds
from tests.benchmarks.table import Row, stated
from tests.support.auditing import audit_chain


def measure(bench: Bench) -> Iterator[Row]:
    """Time the audit of a whole chain."""
    with Ledger.read_only(bench.long_ledger()) as ledger:
        head = ledger.head
        assert audit_chain(ledger, head).faults == ()
        rounds = interleaved(
            bench.n_rounds, {"chain": lambda: seconds(lambda: audit_chain(ledger, head))}
        )
    took_s = rounds.median("chain")
    name = f"verify the chain of {head.position:,} events of 300 B"
    yield stated(name, f"{took_s:.2f} s", took_s)
    yield _with_meaning(bench)


def _with_meaning(bench: Bench) -> Row:
    """Time the check of a tournament, whole."""
    with Ledger.read_only(bench.played_ledger()) as ledger:
        n_events = ledger.head.position
        assert verify(ledger, (), no_progress).faults == ()
        rounds = interleaved(
            bench.n_rounds, {"whole": lambda: seconds(lambda: verify(ledger, (), no_progress))}
        )
    took_s = rounds.median("whole")
    name = f"verify a tournament of {n_events:,} events, meaning included"
    return stated(name, f"{took_s:.2f} s", took_s)
