"""Events for tests that do not care which."""

from ledger.events.judging import VerdictReceived
from tests.builders import key, verdict

N_FILED = 3  # events in the ledger that the fixture `filed` gives


def verdicts(n: int, *, after: int = 0) -> tuple[VerdictReceived, ...]:
    """Return so many different events."""
    return tuple(verdict(key(str(number))) for number in range(after, after + n))
