"""Decide when to send the next requests to a server: as many at a time as it takes, or later.

After "too many requests", nothing is sent for as long as the server asks, and then half as many at
a time as it had; each answer allows one more.
"""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from ledger.store import utc_now

_FIRST_WAIT_S: Final = 0.5
_LONGEST_BACKOFF_S: Final = 60.0


class Pace:
    """How many requests one server may have, and when the next may be sent; thread-safe."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Take a clock, and how to wait by it; None: until the run is stopped, at most."""
        self.now, self.sleep = now, sleep
        self._lock = Lock()
        self._resumes_at = now()
        self._n_at_a_time: int | None = None  # None: it took as many as it was sent
        self._n_rejected = 0  # in a row, "too many requests"

    @property
    def wait_s(self) -> float:
        """Seconds until a request may be sent."""
        with self._lock:
            return max(0.0, (self._resumes_at - self.now()).total_seconds())

    def n_free(self, n_under_way: int, n_most: int) -> int:
        """Return how many further requests the server takes, while so many are under way."""
        with self._lock:
            n_at_a_time = n_most if self._n_at_a_time is None else min(n_most, self._n_at_a_time)
            return max(0, n_at_a_time - n_under_way)

    def hold(self, seconds: float) -> None:
        """Send nothing for so many seconds."""
        with self._lock:
            self._hold(seconds)

    def answered(self) -> None:
        """Count an answer."""
        with self._lock:
            self._n_rejected = 0
            if self._n_at_a_time is not None:
                self._n_at_a_time += 1

    def rejected(self, asked_s: float | None, n_under_way: int) -> float:
        """Slow down after "too many requests"; return the seconds to wait.

        Several requests under way may be rejected for the same reason, and count once.

        Args:
            asked_s: The wait that the server asks for; None: it asks for none.
            n_under_way: How many requests the server had, this one included.
        """
        with self._lock:
            if self.now() >= self._resumes_at:
                self._n_at_a_time = max(1, n_under_way // 2)
                self._n_rejected += 1
            wait_s = back_off_s(self._n_rejected - 1) if asked_s is None else asked_s
            if self._n_rejected > 1:  # a server that names no time or 0 s must not be hammered
                wait_s = max(wait_s, _FIRST_WAIT_S)
            self._hold(wait_s)
            return wait_s

    def _hold(self, seconds: float) -> None:
        self._resumes_at = max(self._resumes_at, self.now() + timedelta(seconds=seconds))


def back_off_s(n_before: int) -> float:
    """Return a wait that doubles with each failure before, with jitter, in seconds."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311  # not for security
    return min(_FIRST_WAIT_S * 2.0 ** min(n_before, 30), _LONGEST_BACKOFF_S) * jitter
