"""Events for tests that do not care which."""

from collections.abc import Iterable

from ledger.events.judging import VerdictReceived
from ledger.recorded import Receipt, Recorded
from tests.builders import key, verdict

N_FILED = 3  # events in the ledger that the fixture `filed` gives


def verdicts(n: int, *, after: int = 0) -> tuple[VerdictReceived, ...]:
    """Return so many different events."""
    return tuple(verdict(key(str(number))) for number in range(after, after + n))


def placed(receipts: Iterable[Receipt]) -> tuple[Recorded, ...]:
    """Return the events that receipts are for, with their places."""
    return tuple(each.recorded for each in receipts)
