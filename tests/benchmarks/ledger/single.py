"""One event, one flush: what a command waits for before it goes on."""

from collections.abc import Iterator
from typing import Final

from ledger.storage.files import beside
from ledger.storage.lock import FileLock
from ledger.storage.tail import Tail
from ledger.storage.writer import EventWriter
from ledger.store import Ledger
from tests.benchmarks.bench import Bench
from tests.benchmarks.ledger.rivals import (
    appender,
    eventsourcing_appender,
    ledger_appender,
    sqlite_appender,
)
from tests.benchmarks.ledger.verdicts import Verdicts, encoded
from tests.benchmarks.rounds import Rounds, cpu_seconds, flush_rate, interleaved, rate
from tests.benchmarks.table import Row, at_least, at_most, compared, per_second, stated

N_EVENTS: Final = 1_000  # a round
N_BYTES: Final = 2_048


def measure(bench: Bench) -> Iterator[Row]:
    """Compare durable appends of one event with the disk and with rivals."""
    rounds = _rounds(bench)
    figure, disk = per_second(rounds.median("ledger")), f"F = {rounds.median('flush'):,.0f}/s"
    name = "append of one 2 KB event"
    yield compared(name, figure, disk, rounds.ratio("ledger", "flush"), at_least(0.75))
    for rival, asked in (("eventsourcing", at_least(1.05)), ("bare sqlite3", None)):
        baseline = f"{rival}: {per_second(rounds.median(rival))}"
        yield compared(name, figure, baseline, rounds.ratio("ledger", rival), asked)
    share = _share_of_checks(bench)
    name = "its processor time spent on looking whether files moved and rows are there"
    yield stated(name, f"{share:.1%}", share, at_most(0.10))


def _rounds(bench: Bench) -> Rounds:
    n, verdicts = bench.scaled(N_EVENTS), Verdicts(N_BYTES)
    with (
        ledger_appender(bench.folder / "single.ledger") as ours,
        eventsourcing_appender(bench.folder / "single.eventsourcing") as theirs,
        sqlite_appender(bench.folder / "single.sqlite") as bare,
    ):
        return interleaved(
            bench.n_rounds,
            {
                "flush": lambda: flush_rate(bench.folder, n),
                "ledger": lambda: rate(ours, verdicts.batches(n, 1)),
                "eventsourcing": lambda: rate(theirs, verdicts.batches(n, 1)),
                "bare sqlite3": lambda: rate(bare, [[encoded(each)] for each in verdicts.take(n)]),
            },
        )


def _share_of_checks(bench: Bench) -> float:
    """Compare an append with the checks in it: of the ledger, its log, two locks, and the rows."""
    n, verdicts = bench.scaled(N_EVENTS), Verdicts(N_BYTES)
    with Ledger.open(bench.folder / "checks.ledger") as ledger:
        append, lock = appender(ledger), ledger._lock
        assert isinstance(lock, FileLock)
        ledger.write_only_beside(beside(ledger.path, ".lock"))  # as a run does with its own lock

        def check() -> None:
            writer = EventWriter(ledger.connection, Tail(), 0)
            for _ in range(n):
                ledger._watch.require_unmoved()
                lock._is_opened_again()
                assert writer.has_recorded

        rounds = interleaved(
            bench.n_rounds,
            {
                "append": lambda: cpu_seconds(lambda: rate(append, verdicts.batches(n, 1))),
                "check": lambda: cpu_seconds(check),
            },
        )
    return rounds.ratio("check", "append")
