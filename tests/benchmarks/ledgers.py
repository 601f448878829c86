"""The ledger as a contender: events are made, checked and appended."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ledger.events.judging import VerdictReceived
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.benchmarks.rounds import Append
from tests.benchmarks.verdicts import Fields, Verdicts

STREAM: Final = StreamId("main")
_AT_ONCE: Final = 10_000


@contextmanager
def ledger_appender(path: Path) -> Iterator[Append[Fields]]:
    """Give what appends a batch durably."""
    with Ledger.open(path) as ledger:
        yield appender(ledger)


def appender(ledger: Ledger) -> Append[Fields]:
    """Return what appends a batch to an open ledger."""

    def append(batch: Sequence[Fields]) -> None:
        ledger.append(STREAM, [VerdictReceived(**fields) for fields in batch])

    return append


def fill(path: Path, n_events: int, n_bytes: int) -> None:
    """Make a ledger of so many events."""
    verdicts = Verdicts(n_bytes)
    with ledger_appender(path) as append:
        for start in range(0, n_events, _AT_ONCE):
            append(verdicts.take(min(_AT_ONCE, n_events - start)))
