"""The SDK's client, and its errors in our words.

A key may stand in no message and no traceback, with its locals or without. What lies below the
SDK quotes a header that cannot be sent, so its frames and causes are taken off each error.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

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

from commands.backends.json_body import whole
from commands.errors import NoCredentials, ProviderError, SpendLimitReached
from ledger.errors import TourneyError

_KEY_NAMES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_TIMEOUT: Final = Timeout(600.0, connect=10.0)  # with its own the SDK refuses long replies
_GET_RETRIES: Final = 5
_LONGEST_WAIT_S: Final = 120.0  # nobody sees that it is waited for; OpenAI's client has the same
_NO_CREDIT: Final = "credit balance is too low"
_NOT_SENT: Final = (
    *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
    *(httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError),
)


def make_client(*, timeout: Timeout = _TIMEOUT) -> Anthropic:
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
    return Anthropic(max_retries=0, timeout=timeout)


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
