"""One event, one flush: what a command waits for before it goes on."""

from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.ledger.rivals import (
    eventsourcing_appender,
    ledger_appender,
    sqlite_appender,
)
from tests.benchmarks.ledger.verdicts import Verdicts, encoded
from tests.benchmarks.rounds import Rounds, flush_rate, interleaved, rate
from tests.benchmarks.table import Row, at_least, compared, per_second

N_EVENTS: Final = 1_000  # a round
N_BYTES: Final = 2_048


def measure(bench: Bench) -> Iterator[Row]:
    """Compare durable appends of one event with the disk and with rivals."""
    rounds = _rounds(bench)
    figure, disk = per_second(rounds.median("ledger")), f"F = {rounds.median('flush'):,.0f}/s"
    name = "append of one 2 KB event"
    yield compared(name, figure, disk, rounds.ratio("ledger", "flush"))
    for rival, asked in (("eventsourcing", at_least(1.05)), ("bare sqlite3", None)):
        baseline = f"{rival}: {per_second(rounds.median(rival))}"
        yield compared(name, figure, baseline, rounds.ratio("ledger", rival), asked)


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
