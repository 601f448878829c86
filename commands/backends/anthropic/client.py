"""The SDK's client, and its errors in our words.

A key may stand in no message and no traceback, with its locals or without. What lies below the
SDK quotes a header that cannot be sent, so its frames and causes are taken off each error.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import Lock
from typing import Final, TypeVar

import httpx2
import msgspec
from anthropic import (
    Anthropic,
    APIError,
    APIRequest,
    APIResponse,
    APIStatusError,
    APITimeoutError,
    CallNext,
    Timeout,
)

from commands.backends._remote import whole
from commands.errors import NoCredentials, ProviderError, SpendLimitReached
from ledger.errors import TourneyError
from ledger.store import utc_now

_KEY_NAMES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_TIMEOUT: Final = Timeout(600.0, connect=10.0)  # with its own the SDK refuses long replies
_GET_RETRIES: Final = 5
_LONGEST_WAIT_S: Final = 120.0  # nobody sees that it is waited for; OpenAI's client has the same
_NO_CREDIT: Final = "credit balance is too low"
_NOT_SENT: Final = (
    *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
    *(httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError),
)


def make_client() -> Anthropic:
    """Return the SDK's client, which sends each request once.

    The key is ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, the server ANTHROPIC_BASE_URL.

    Raises:
        NoCredentials: There is no key, or one that cannot be sent.
    """
    name = next((name for name in _KEY_NAMES if os.environ.get(name)), None)
    if name is None:
        raise NoCredentials(f"{' and '.join(_KEY_NAMES)} are not set")
    if not _is_sendable(name):
        raise NoCredentials(f"{name} holds a space, a line break or another unfit character")
    return Anthropic(max_retries=0, timeout=_TIMEOUT)


def repeating(client: Anthropic) -> Anthropic:
    """Return a client that sends again what fails: for calls that cost nothing."""
    return client.with_options(max_retries=_GET_RETRIES, middleware=[_impatiently])


def _impatiently(request: APIRequest, call_next: CallNext) -> APIResponse[object]:
    """Keep the SDK, which would wait for weeks, to the waits that `Pace` keeps."""
    response = call_next(request)
    headers = response.http_response.headers
    if _is_too_long(retry_after_s(headers)):
        headers["x-should-retry"] = "false"
    elif retry_after_s(headers) is None:
        headers.pop("retry-after", None)  # a date, by a clock that is not ours
    return response


def asks_too_much(error: APIError) -> bool:
    """Tell whether the provider wants to be left alone for longer than anyone waits unasked."""
    return isinstance(error, APIStatusError) and _is_too_long(retry_after_s(error.response.headers))


def _is_too_long(asked_s: float | None) -> bool:
    return asked_s is not None and asked_s > _LONGEST_WAIT_S


def retry_after_s(headers: httpx2.Headers) -> float | None:
    """Return how long the provider wants to be left alone."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit_s)
        except (KeyError, ValueError):
            continue
    return None


@contextmanager
def in_our_words() -> Iterator[None]:
    """Raise the SDK's errors as ours, and an answer that is not the provider's.

    Raises:
        NoCredentials: The provider refuses the key.
        SpendLimitReached: The provider's limit.
        ProviderError: Anything else.
    """
    try:
        yield
    except APIError as error:
        raise provider_error(error) from bare(error)
    except msgspec.DecodeError as error:
        raise ProviderError(strange(error)) from error


def strange(why: msgspec.DecodeError) -> str:
    """Return what to say of an answer that no server of Anthropic's gives."""
    return (
        f"what answers is not Anthropic's API ({why}); correct ANTHROPIC_BASE_URL, or pass by the"
        " proxy between"
    )


def provider_error(error: APIError) -> TourneyError:
    """Return an error of the SDK as ours."""
    return stop_of(error) or ProviderError(said(error))


def stop_of(error: APIError) -> TourneyError | None:
    """Return why no further request can go well, if that is so."""
    if not isinstance(error, APIStatusError):
        return None
    code, status = error.error_code or "", error.status_code
    # a RateLimitError as far as the SDK can tell, which it would send again
    is_limited = status == HTTPStatus.PAYMENT_REQUIRED or code.endswith("spend_limit_reached")
    if is_limited or (status == HTTPStatus.BAD_REQUEST and is_out_of_credit(error.api_message)):
        return SpendLimitReached(said(error))
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return NoCredentials(f"the provider refuses the key: {said(error)}")
    return None


def is_out_of_credit(message: object) -> bool:
    """Tell whether an invalid request is one that cannot be paid for; only its words say so."""
    return _NO_CREDIT in str(message).lower()


def said(error: APIError) -> str:
    """Return in a line what happened; a key that the provider repeats is struck out."""
    if isinstance(error, APITimeoutError):
        return "no answer from the provider in time"
    if not isinstance(error, APIStatusError):
        cause = type(error.__cause__ or error).__name__
        return f"the connection to {error.request.url.host} failed ({cause})"
    words = [f"HTTP {error.status_code}", error.type, error.error_code]
    if error.status_code != HTTPStatus.UNAUTHORIZED:  # some servers repeat parts of the key
        words.append(error.api_message)
    line = ": ".join(" ".join(whole(str(word)).split()) for word in words if word)
    for secret in _secrets(error.request.headers):
        line = line.replace(secret, "[key]")
    if asks_too_much(error):
        line += f"; it wants {retry_after_s(error.response.headers):g} s without requests"
    return line if error.request_id is None else f"{line} (request {error.request_id})"


def was_sent(error: APIError) -> bool:
    """Tell whether the provider may have had the request."""
    return not isinstance(error.__cause__, _NOT_SENT)


def bare(error: APIError) -> APIError:
    """Return an error without the SDK's frames and the errors below it, which may hold the key."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _is_sendable(name: str) -> bool:
    """Tell whether a header may hold the key; else the SDK would quote it as it complains."""
    return all("!" <= character <= "~" for character in os.environ[name])


def _secrets(headers: httpx2.Headers) -> tuple[str, ...]:
    token = headers.get("authorization", "").removeprefix("Bearer ")
    return tuple(filter(None, (headers.get("x-api-key", ""), token)))


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
