"""When requests may go: as the provider's headers ask, and again after a failure that passes."""

import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import Lock
from typing import Final, TypeVar

import httpx2
from anthropic import APIError, APIStatusError

from commands.backends.anthropic_client import asks_too_much, retry_after_s, stop_of, was_sent
from ledger.store import utc_now

_ATTEMPTS: Final = 6
_FIRST_WAIT_S: Final = 0.5
_LONGEST_BACKOFF_S: Final = 32.0
_LONGEST_HOLD_S: Final = 60.0  # limits fill up all the time, and the provider's clock is not ours
_LIMITED: Final = ("requests", "input-tokens", "output-tokens", "tokens")
_OVERLOADED: Final = 529
_BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, _OVERLOADED})
_UNANSWERED: Final = _BUSY | {
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
_T = TypeVar("_T")


class Pace:
    """Holds back all threads that send, until the provider is ready for more."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._lock = Lock()
        self._resumes_at = now()

    def wait(self) -> None:
        """Sleep until the next request may go."""
        while (wait_s := (self._resumes_at - self._now()).total_seconds()) > 0:
            self._sleep(wait_s)

    def hold(self, seconds: float) -> None:
        """Let no request go for a while."""
        with self._lock:
            until = self._now() + timedelta(seconds=seconds)
            self._resumes_at = max(self._resumes_at, until)

    def heed(self, headers: httpx2.Headers) -> None:
        """Hold until a limit of which nothing remains is reset."""
        for name in _LIMITED:
            remaining = headers.get(f"anthropic-ratelimit-{name}-remaining")
            resets_at = headers.get(f"anthropic-ratelimit-{name}-reset")
            if remaining == "0" and resets_at is not None:
                self.hold(min(self._seconds_until(resets_at), _LONGEST_HOLD_S))

    def _seconds_until(self, resets_at: str) -> float:
        """Read a time; one that cannot be read holds nobody up, and loses no reply."""
        try:
            return (datetime.fromisoformat(resets_at) - self._now()).total_seconds()
        except (ValueError, TypeError):
            return 0.0

    def back_off(self, attempt: int, headers: httpx2.Headers | None = None) -> None:
        """Hold as long as the provider asks for, else longer after each attempt."""
        asked_s = None if headers is None else retry_after_s(headers)
        backoff_s = min(_FIRST_WAIT_S * 2**attempt, _LONGEST_BACKOFF_S)
        jitter = random.uniform(0.5, 1.0)  # noqa: S311 # no secret
        self.hold(backoff_s * jitter if asked_s is None else asked_s)


def sent(send: Callable[[], _T], pace: Pace, *, passes: Callable[[APIError], bool]) -> _T:
    """Return what a request brings; it is sent again, so many times, after a failure that passes.

    Raises:
        APIError: The failure does not pass, or did not in time.
    """
    for attempt in range(_ATTEMPTS - 1):
        pace.wait()
        try:
            return send()
        except APIError as error:
            if not passes(error) or asks_too_much(error):
                raise
            response = error.response if isinstance(error, APIStatusError) else None
            pace.back_off(attempt, None if response is None else response.headers)
    pace.wait()
    return send()


def nothing_was_done(error: APIError) -> bool:
    """Tell whether the provider was too busy to begin, or never had the request."""
    return _passes(error, _BUSY)


def nothing_was_answered(error: APIError) -> bool:
    """Tell whether a message was certainly not answered; what fails on the way is not billed."""
    return _passes(error, _UNANSWERED)


def _passes(error: APIError, statuses: frozenset[int]) -> bool:
    if isinstance(error, APIStatusError):
        return error.status_code in statuses and stop_of(error) is None
    return not was_sent(error)
