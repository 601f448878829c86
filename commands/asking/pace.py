"""Decide when the next requests may be sent to a server, and how many at a time.

Nothing is limited until a server says "too many requests". From then on requests are sent at a
rate: half of it after a rejection, a little more with each answer. A server that has just rejected
a request is sent one at a time until it answers one, so an outage costs few rejections, each of
which may be billed, and does not count as a limit.
"""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from math import inf
from threading import Lock
from time import monotonic
from typing import Final

from ledger.store import utc_now

FIRST_WAIT_S: Final = 0.5
_LONGEST_BACKOFF_S: Final = 60.0
_FIRST_PER_S: Final = 30.0  # after the first rejection
_GROWTH: Final = 0.05  # of 1 request per second, or of the rate where it is lower, per answer
_BEGAN: Final = utc_now(), monotonic()


def steady_now() -> datetime:
    """Return the time by a clock that nobody sets: a wait is not cut short by it, nor drawn out."""
    began_at, began_s = _BEGAN
    return began_at + timedelta(seconds=monotonic() - began_s)


class Pace:
    """When one server may be sent requests, and how many at a time; thread-safe."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = steady_now,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Take a clock, and how to wait by it; None: until the run is stopped, at most."""
        self.now, self.sleep = now, sleep
        self._lock = Lock()
        self._resumes_at = self._next_at = now()
        self._per_s = inf  # no rejection yet, so no limit
        self._under_way: set[int] = set()  # the numbers of requests
        self._n_sent = 0
        self._last_of_round = 0  # the last request that was sent before the limit was halved
        self._n_rejected = 0  # rounds in a row

    @property
    def wait_s(self) -> float:
        """Seconds until a request may be sent."""
        with self._lock:
            is_paced = not self._n_rejected
            may_send_at = max(self._resumes_at, self._next_at) if is_paced else self._resumes_at
            return max(0.0, (may_send_at - self.now()).total_seconds())

    def n_free(self, n_most: int) -> int:
        """Return how many further requests may be sent once the wait is over.

        Args:
            n_most: How many may be under way.
        """
        with self._lock:
            if self._n_rejected:
                return int(all(number <= self._last_of_round for number in self._under_way))
            n_free = max(0, n_most - len(self._under_way))
            return n_free if self._per_s == inf else min(n_free, 1)

    def sent(self) -> int:
        """Count a request that is sent now; return its number."""
        with self._lock:
            self._n_sent += 1
            self._under_way.add(self._n_sent)
            self._next_at = self.now() + timedelta(seconds=1 / self._per_s)
            return self._n_sent

    def ended(self, number: int) -> None:
        """Note that a request is no longer under way, whatever became of it."""
        with self._lock:
            self._under_way.discard(number)

    def hold(self, seconds: float) -> None:
        """Send nothing for so many seconds."""
        with self._lock:
            self._hold(seconds)

    def answered(self, number: int) -> None:
        """Count an answer to the request of a number."""
        with self._lock:
            if number > self._last_of_round:
                self._n_rejected = 0
            self._per_s += _GROWTH * min(1.0, self._per_s)

    def rejected(self, number: int, asked_s: float | None, *, is_billed: bool = False) -> float:
        """Slow down after "too many requests"; return the seconds to wait.

        Requests that were under way together are rejected for the same reason, and count once.

        Args:
            number: The request's.
            asked_s: The wait that the server asks for; None: it asks for none.
            is_billed: Whether it may bill what it rejects: then it is asked ever more rarely.
        """
        with self._lock:
            if number > self._last_of_round:
                if not self._n_rejected:  # else it has answered nothing since, as in an outage
                    self._per_s = min(self._per_s / 2, _FIRST_PER_S)
                self._last_of_round = self._n_sent
                self._n_rejected += 1
            wait_s = back_off_s(self._n_rejected - 1) if asked_s is None else asked_s
            if is_billed:
                longer_s = wait_s * 2.0 ** min(self._n_rejected - 1, 30)
                wait_s = max(wait_s, min(longer_s, _LONGEST_BACKOFF_S))
            if self._n_rejected > 1:  # a server that names no time or 0 s must not be hammered
                wait_s = max(wait_s, FIRST_WAIT_S)
            self._hold(wait_s)
            return wait_s

    def _hold(self, seconds: float) -> None:
        self._resumes_at = max(self._resumes_at, self.now() + timedelta(seconds=seconds))


def back_off_s(n_before: int) -> float:
    """Return a wait that doubles with each failure before, with jitter, in seconds."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311  # not for security
    return min(FIRST_WAIT_S * 2.0 ** min(n_before, 30), _LONGEST_BACKOFF_S) * jitter
