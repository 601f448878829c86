"""Wait for batches: how often to poll them, and progress lines, since a wait may last a day."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from commands.ports import OnProgress, Tell
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.events.registration import JudgeSettings
from ledger.store import utc_now

_FIRST_S: Final = 5.0
_GROWTH: Final = 1.5
_BETWEEN_LINES: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class BatchOptions:
    """How batches are sent, priced and polled, and the clock to do it by."""

    tell: Tell
    on_progress: OnProgress
    pricing_of: Callable[[JudgeSettings], Pricing] = lambda _: FREE_OF_CHARGE
    waits: bool = True  # False: poll once, and leave the rest to a later command
    prewarms: bool = False  # send the first query of each rubric ahead: others find it cached
    most_queries: int = 2000  # in one batch; fewer where the provider takes fewer
    longest_poll_s: float = 60.0  # between two polls
    settle_s: float = 300.0  # what was sent, and the provider does not list then, never arrived
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = utc_now

    def delays_s(self) -> Iterator[float]:
        """Yield the delays between polls: longer and longer, up to the longest."""
        delay_s = min(_FIRST_S, self.longest_poll_s)
        while True:
            yield delay_s
            delay_s = min(delay_s * _GROWTH, self.longest_poll_s)


class Watch:
    """Tells each minute where a wait stands, and since when a provider has not answered."""

    def __init__(self, options: BatchOptions) -> None:
        self._options, self._tell = options, options.tell
        self._began_at: datetime | None = None  # None: nobody has waited yet
        self._told_at = options.now()
        self._silent_since: datetime | None = None
        self._why_silent: str | None = None

    def looked(self, why_silent: str | None) -> None:
        """Record after each poll that every provider answered, or why one did not."""
        if why_silent is None:
            if self._silent_since is not None:
                self._tell("the provider answers again")
            self._silent_since = None
        elif self._silent_since is None or why_silent != self._why_silent:
            self._silent_since = self._silent_since or self._options.now()
            self._tell(f"the provider does not answer: {why_silent}")
        self._why_silent = why_silent

    def sleep(self, seconds: float, standing: Callable[[], str]) -> None:
        """Wait; once a minute, tell what has come so far."""
        if self._began_at is None:
            self._began_at = self._told_at = self._options.now()
        while seconds > 0:
            left = self._told_at + _BETWEEN_LINES - self._options.now()
            if left <= timedelta():
                self._tell(self._line(self._began_at, standing()))
                self._told_at, left = self._options.now(), _BETWEEN_LINES
            part_s = min(seconds, left.total_seconds())
            self._options.sleep(part_s)
            seconds -= part_s

    def _line(self, began_at: datetime, standing: str) -> str:
        waited = f"waiting for {_lasting(self._options.now() - began_at)}: {standing}"
        if self._silent_since is None:
            return waited
        since = f"{self._silent_since.astimezone():%H:%M:%S}"
        return f"{waited}; no answer since {since}: {self._why_silent}"


def _lasting(time: timedelta) -> str:
    """Return a duration in words: "5 min", "2 h 5 min"."""
    hours, minutes = divmod(int(time.total_seconds()) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
