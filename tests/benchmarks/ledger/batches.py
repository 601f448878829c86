"""Batches of a hundred: the flush counts little, so Python, hashes and pages do."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ledger.chain import GENESIS, LeafContent, leaf_hash, link_hash
from ledger.store import Ledger
from tests.benchmarks.bench import Bench
from tests.benchmarks.ledger.rivals import eventsourcing_appender, ledger_appender, sqlite_appender
from tests.benchmarks.ledger.verdicts import Fields, Verdicts, encoded
from tests.benchmarks.rounds import Rounds, interleaved, rate
from tests.benchmarks.table import Row, at_least, at_most, compared, per_second, stated

N_BATCHES: Final = 100  # a round
SIZE: Final = 100
N_BYTES: Final = 2_048


def measure(bench: Bench) -> Iterator[Row]:
    """Compare batches with a rival's, and say what hashes and pages add."""
    path = bench.folder / "batches.ledger"
    rounds = _rounds(bench, path)
    name = f"append of {SIZE} events of 2 KB at once"
    ours, theirs = rounds.median("ledger"), per_second(rounds.median("eventsourcing"))
    yield stated(name, per_second(ours), ours, at_least(35_000))
    ratio = rounds.ratio("ledger", "eventsourcing")
    yield compared(name, per_second(ours), f"eventsourcing: {theirs}", ratio, at_least(1.2))
    bare = f"bare sqlite3: {per_second(rounds.median('sqlite'))}"
    yield compared(name, per_second(ours), bare, rounds.ratio("ledger", "sqlite"))
    share = rounds.ratio("ledger", "hashing")  # the quicker the hashes, the smaller their share
    yield stated("its share spent in hashing", f"{share:.1%}", share)
    growth = path.stat().st_size / _n_payload_bytes(path)
    yield stated("its file, to the payload in it", f"{growth:.2f}", growth, at_most(1.3))


def _rounds(bench: Bench, path: Path) -> Rounds:
    n, verdicts = bench.scaled(N_BATCHES), Verdicts(N_BYTES)
    with (
        ledger_appender(path) as ours,
        eventsourcing_appender(bench.folder / "batches.eventsourcing") as theirs,
        sqlite_appender(bench.folder / "batches.sqlite") as bare,
    ):
        return interleaved(
            bench.n_rounds,
            {
                "ledger": lambda: rate(ours, verdicts.batches(n, SIZE)),
                "hashing": lambda: _hashing_rate(path, n),
                "eventsourcing": lambda: rate(theirs, verdicts.batches(n, SIZE)),
                "sqlite": lambda: rate(bare, _ready(verdicts.batches(n, SIZE))),
            },
        )


def _ready(batches: list[list[Fields]]) -> list[list[bytes]]:
    return [[encoded(fields) for fields in batch] for batch in batches]


def _hashing_rate(path: Path, n_batches: int) -> float:
    """Hash the last batch as often as the ledger hashed one; return events per second.

    One batch again and again, since an append hashes what it has just made, in the cache.
    """
    with Ledger.read_only(path) as ledger:
        last = ledger.head.position
        entries = [row.entry for row in ledger.rows(after=last - SIZE)]
    began = time.perf_counter()
    for _ in range(n_batches):
        _hash(entries)
    return n_batches * len(entries) / (time.perf_counter() - began)


def _hash(entries: list[LeafContent]) -> bytes:
    chain = GENESIS
    for entry in entries:
        chain = link_hash(chain, leaf_hash(entry))
    return chain


def _n_payload_bytes(path: Path) -> int:
    with Ledger.read_only(path) as ledger:
        [(n_bytes,)] = ledger.select("SELECT sum(length(data)) FROM event")
    return int(n_bytes)
