"""The fake's clock: the real one plus what a test has moved it on by."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def real_time() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class Clock:
    """A clock that a test may move on, so that a day passes at once."""

    def __init__(self, now: Callable[[], datetime] = real_time) -> None:
        self._now = now
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Return the time, later by all that was advanced."""
        return self._now() + self._ahead

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._ahead += by


def stamp(moment: datetime | None) -> str | None:
    """Return a time as the API writes it."""
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
