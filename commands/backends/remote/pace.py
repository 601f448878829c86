"""Decide when to send the next request to a server: rate limits, back-off, and waits it asks for.

After "too many requests", nothing is sent for as long as the server asks, and then at the rate
that it last accepted. The rate rises again along a cubic: slowly near the rate that was too high
the last time, then faster (Ha, Rhee and Xu 2008, "CUBIC: a new TCP-friendly
high-speed TCP variant", eq. 1, for congestion windows).
"""

import random
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from ledger.store import utc_now

_MEASURED_S: Final = 5.0  # the rate of a slow server is measured over so long, others' over 1 s
_FEW: Final = 5  # answers in a second
_DROP: Final = 0.05  # of the measured rate, after it was too high
_PLATEAU_S: Final = 20.0  # until the measured rate is tried again
_LEAST_RATE: Final = 0.1  # requests per second
_AHEAD_S: Final = 0.05  # what may be sent at once, in seconds of the rate
_FIRST_WAIT_S: Final = 0.5
_LONGEST_BACKOFF_S: Final = 60.0


class Pace:
    """When the next requests may be sent to one server; thread-safe."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Take a clock, and how to wait by it; None: until the run is stopped, at most."""
        self.now, self.sleep = now, sleep
        self._lock = Lock()
        self._resumes_at = self._raised_from = now()
        self._answered: deque[datetime] = deque()  # when the last answers came
        self._rate: float | None = None  # per second, that was too high; None: not known yet
        self._next_at = now()
        self._n_rejected = 0  # in a row, "too many requests"

    @property
    def wait_s(self) -> float:
        """Seconds until a request may be sent."""
        with self._lock:
            earliest = self._resumes_at if self._rate is None else self._later()
            return max(0.0, (earliest - self.now()).total_seconds())

    def grant(self, n_wanted: int) -> int:
        """Return how many of so many requests may be sent now, and count them as sent."""
        with self._lock:
            now = self.now()
            if now < self._resumes_at:
                return 0
            if self._rate is None:
                return n_wanted
            between = timedelta(seconds=1 / self._allowed(self._rate, now))
            self._next_at = max(self._next_at, now - timedelta(seconds=_AHEAD_S))
            n_granted = 0
            while n_granted < n_wanted and self._next_at <= now:
                self._next_at += between
                n_granted += 1
            return n_granted

    def hold(self, seconds: float) -> None:
        """Send nothing for so many seconds."""
        with self._lock:
            self._hold(seconds)

    def answered(self) -> None:
        """Count an answer."""
        with self._lock:
            self._n_rejected = 0
            self._answered.append(self.now())
            self._drop_old_answers()

    def rejected(self, asked_s: float | None) -> float:
        """Slow down after "too many requests"; return the seconds to wait.

        Several requests under way may be rejected for the same reason, and count once.

        Args:
            asked_s: The wait that the server asks for; None: it asks for none.
        """
        with self._lock:
            now = self.now()
            if now >= self._resumes_at:
                self._slow_down(now)
                self._n_rejected += 1
            wait_s = back_off_s(self._n_rejected - 1) if asked_s is None else asked_s
            if self._n_rejected > 1:  # a server that names no time or 0 s must not be hammered
                wait_s = max(wait_s, _FIRST_WAIT_S)
            self._hold(wait_s)
            self._raised_from = self._resumes_at
            return wait_s

    def _hold(self, seconds: float) -> None:
        until = self.now() + timedelta(seconds=seconds)
        self._resumes_at = max(self._resumes_at, until)
        self._next_at = max(self._next_at, until)

    def _slow_down(self, now: datetime) -> None:
        """Take the rate of the last answers for what the server allows."""
        self._drop_old_answers()
        a_second_ago = now - timedelta(seconds=1)
        n_in_a_second = sum(each > a_second_ago for each in self._answered)
        if n_in_a_second >= _FEW:
            self._rate = float(n_in_a_second)
        elif self._answered:
            self._rate = max(_LEAST_RATE, len(self._answered) / _MEASURED_S)
        elif self._rate is not None:
            self._rate = max(_LEAST_RATE, self._rate / 2)

    def _drop_old_answers(self) -> None:
        since = self.now() - timedelta(seconds=_MEASURED_S)
        while self._answered and self._answered[0] < since:
            self._answered.popleft()

    def _later(self) -> datetime:
        return max(self._resumes_at, self._next_at)

    def _allowed(self, too_high: float, now: datetime) -> float:
        """Return the rate that is tried now: a little less than was too high, later more."""
        raised_s = max(0.0, (now - self._raised_from).total_seconds())
        return too_high * (1 + _DROP * ((raised_s - _PLATEAU_S) / _PLATEAU_S) ** 3)


def back_off_s(n_before: int) -> float:
    """Return a wait that doubles with each failure before, with jitter, in seconds."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311  # not for security
    return min(_FIRST_WAIT_S * 2.0 ** min(n_before, 30), _LONGEST_BACKOFF_S) * jitter
