"""The SDK's client, its errors as tourney's, and what they tell of a request's fate.

No message or traceback may show the API key. Libraries below the SDK quote headers in their
errors, so their frames and causes are removed from each error.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar
from weakref import finalize

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
    DefaultHttpxClient,
    Timeout,
)

from commands.backends.remote.bodies import (
    CONNECT_S,
    FREE_CALL_S,
    TIMEOUT_S,
    decode_json,
    replace_surrogates,
    retry_after_s,
    was_not_sent,
)
from commands.backends.remote.guarded_client import GuardedClient
from commands.backends.remote.outcomes import failure_of_free_call
from commands.errors import (
    ConfigurationError,
    NoCredentials,
    NotAnswering,
    ProviderError,
    SpendLimitReached,
)
from commands.settings.api_keys import redacted
from ledger.errors import TourneyError

_KEY_NAMES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_ADDRESS_NAME: Final = "ANTHROPIC_BASE_URL"
_TIMEOUT: Final = Timeout(TIMEOUT_S, connect=CONNECT_S)  # the SDK's own rejects long replies
_GET_RETRIES: Final = 5
_LONGEST_WAIT_S: Final = 120.0  # longer waits look like a hang; OpenAI's client has the same limit
_NO_CREDIT: Final = re.compile(
    r"credit balance is too low|(?:usage|spend\w*) limits?", re.IGNORECASE
)
_T = TypeVar("_T")


def make_client() -> Anthropic:
    """Return the SDK's client, which sends each request once.

    The key is ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, the server ANTHROPIC_BASE_URL.

    Raises:
        NoCredentials: No key is set, or it has characters that no header can hold.
        ConfigurationError: ANTHROPIC_BASE_URL is not an address.
    """
    name = next((name for name in _KEY_NAMES if os.environ.get(name)), None)
    if name is None:
        raise NoCredentials(f"{' and '.join(_KEY_NAMES)} are not set")
    # else the SDK would quote the key in an error
    if not all("!" <= character <= "~" for character in os.environ[name]):
        raise NoCredentials(f"{name} contains a space, a line break or another invalid character")
    _require_address(os.environ.get(_ADDRESS_NAME))
    return Anthropic(max_retries=0, timeout=_TIMEOUT, http_client=_SdkClient(timeout=_TIMEOUT))


class _SdkClient(GuardedClient, DefaultHttpxClient):
    """Has the SDK's limits."""


def _require_address(address: str | None) -> None:
    """Require that the server's address is one, if it is set."""
    try:
        is_valid = not address or httpx2.URL(address.strip()).host != ""
    except httpx2.InvalidURL:
        is_valid = False
    if not is_valid or (address and not address.strip().startswith(("http://", "https://"))):
        found = redacted(address or "")
        fault = f"{_ADDRESS_NAME} is not an address such as https://api.anthropic.com: {found!r}"
        raise ConfigurationError([fault])


def with_client(make: Callable[[Anthropic], _T]) -> _T:
    """Return what asks by a client, which is closed when its only user is freed.

    Else its sockets could be freed first.

    Raises:
        NoCredentials: As for `make_client`.
    """
    client = make_client()
    asker = make(client)
    finalize(asker, client.close)
    return asker


def require_reachable() -> None:
    """Require that the provider is there and takes the key; it costs nothing.

    Raises:
        NoCredentials: There is no key, or the provider refuses it.
        ProviderError: It cannot be reached.
    """
    try:
        with make_client().with_options(timeout=CONNECT_S) as client:
            client.models.with_raw_response.list(limit=1)
    except APIError as error:
        fatal = fatal_error(error)
        if fatal is not None or status_of(error) is None:
            raise fatal or ProviderError(describe_error(error)) from without_key(error)


def with_retries(client: Anthropic) -> Anthropic:
    """Return a client that retries failed requests: for calls that cost nothing."""
    timeout = Timeout(FREE_CALL_S, connect=CONNECT_S)
    return client.with_options(max_retries=_GET_RETRIES, timeout=timeout, middleware=[_limit_waits])


def _limit_waits(request: APIRequest, call_next: CallNext) -> APIResponse[object]:
    """Stop the SDK from waiting so long that it looks like a hang."""
    response = call_next(request)
    headers = response.http_response.headers
    asked_s = retry_after_s(headers)
    if _is_too_long(asked_s):
        headers["x-should-retry"] = "false"
    elif asked_s is None:
        headers.pop("retry-after", None)
    else:  # a date is by the provider's clock
        headers["retry-after"] = f"{asked_s:g}"
    return response


def wants_long_wait(error: APIError) -> bool:
    """Return whether the provider asks for a longer wait than tourney keeps silently."""
    return isinstance(error, APIStatusError) and _is_too_long(retry_after_s(error.response.headers))


def _is_too_long(asked_s: float | None) -> bool:
    return asked_s is not None and asked_s > _LONGEST_WAIT_S


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the SDK's errors, and replies that cannot be decoded, into tourney's errors.

    Raises:
        NoCredentials: The provider refuses the key.
        SpendLimitReached: The provider's spend limit is reached.
        NotAnswering: The provider cannot be reached, has a fault of its own, or something between
            answers in its place.
        ProviderError: Any other failure.
    """
    try:
        yield
    except APIError as error:
        raise provider_error(error) from without_key(error)
    except msgspec.DecodeError as error:
        raise NotAnswering(not_the_api(error)) from error


def not_the_api(why: msgspec.DecodeError) -> str:
    """Return a message for a reply that does not come from Anthropic's API."""
    return (
        f"the server does not reply like Anthropic's API ({why}); correct ANTHROPIC_BASE_URL, or"
        " bypass the proxy"
    )


def provider_error(error: APIError) -> TourneyError:
    """Return the error for a call that costs nothing."""
    return fatal_error(error) or failure_of_free_call(describe_error(error), status_of(error))


def fatal_error(error: APIError) -> NoCredentials | SpendLimitReached | None:
    """Return an error if no further request can succeed; else None."""
    if not isinstance(error, APIStatusError):
        return None
    code, status = error.error_code or "", error.status_code
    # the SDK takes this for a RateLimitError, and would retry
    is_limited = status == HTTPStatus.PAYMENT_REQUIRED or code.endswith("spend_limit_reached")
    if is_limited or (status == HTTPStatus.BAD_REQUEST and is_out_of_credit(error.api_message)):
        return SpendLimitReached(describe_error(error))
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return NoCredentials(f"the provider refuses the key: {describe_error(error)}")
    return None


def is_out_of_credit(message: object) -> bool:
    """Return whether a message says that credit or limit is used up; no status code does."""
    return _NO_CREDIT.search(str(message)) is not None


def describe_error(error: APIError) -> str:
    """Describe an error in one line, without keys."""
    if isinstance(error, APITimeoutError):
        return "no answer from the provider in time"
    if not isinstance(error, APIStatusError):
        cause = type(error.__cause__ or error).__name__
        return f"the connection to {error.request.url.host} failed ({cause})"
    words = [f"HTTP {error.status_code}", error.type, error.error_code]
    if error.status_code != HTTPStatus.UNAUTHORIZED:  # some servers repeat parts of the key
        words.append(error.api_message)
    line = ": ".join(" ".join(replace_surrogates(str(word)).split()) for word in words if word)
    line = redacted(line)
    if wants_long_wait(error):
        line += f"; it asks to wait {retry_after_s(error.response.headers):g} s"
    return line if error.request_id is None else f"{line} (request {redacted(error.request_id)})"


def may_have_arrived(error: APIError) -> bool:
    """Return whether the provider may have received the request."""
    return not was_not_sent(error.__cause__)


def without_key(error: APIError) -> APIError:
    """Remove the frames and causes from an error, which may show the key."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


_LONGEST_HOLD_S: Final = 60.0  # limits refill all the time, and clocks differ
_LIMITED: Final = ("requests", "input-tokens", "output-tokens", "tokens")
_OVERLOADED: Final = 529
_BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, _OVERLOADED})
_STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": _OVERLOADED,
}


def limit_reset_s(headers: httpx2.Headers, now: datetime) -> float:
    """Return the seconds until an exhausted rate limit is refilled; 0 if none is exhausted."""
    resets = (
        headers.get(f"anthropic-ratelimit-{name}-reset", "")
        for name in _LIMITED
        if headers.get(f"anthropic-ratelimit-{name}-remaining") == "0"
    )
    return min(max((_seconds_until(each, now) for each in resets), default=0.0), _LONGEST_HOLD_S)


def _seconds_until(moment: str, now: datetime) -> float:
    """Return the seconds until a time; 0 if it cannot be parsed or is past."""
    try:
        return max(0.0, (datetime.fromisoformat(moment) - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def is_busy(error: APIError) -> bool:
    """Return whether the provider takes no requests at present."""
    return status_of(error) in _BUSY and fatal_error(error) is None


def kinds_of(error: APIError) -> tuple[object, ...]:
    """Return by which word the API's own error says what it is."""
    return (error.type,) if isinstance(error, APIStatusError) else ()


class _ApiError(msgspec.Struct, frozen=True):
    type: str
    message: str = ""


class _ApiErrorWithin(msgspec.Struct, frozen=True):
    error: _ApiError


_ERROR_WITHIN: Final = msgspec.json.Decoder(_ApiErrorWithin)


def error_within(body: bytes, answer: httpx2.Response) -> APIStatusError | None:
    """Return the error that a successful answer holds in place of a message; None: it has none."""
    try:
        error = decode_json(body, _ERROR_WITHIN).error
    except msgspec.DecodeError:
        return None
    status = _STATUS_OF.get(error.type, HTTPStatus.INTERNAL_SERVER_ERROR)
    response = httpx2.Response(status, headers=answer.headers, request=answer.request)
    told: dict[str, object] = {"error": msgspec.to_builtins(error)}
    return APIStatusError(error.message, response=response, body=told)


def asked_wait_s(error: APIError) -> float | None:
    """Return the wait that the provider asks for, in seconds; None if it asks for none."""
    return retry_after_s(error.response.headers) if isinstance(error, APIStatusError) else None


def status_of(error: APIError) -> int | None:
    """Return the status of the provider's answer; None: there was none."""
    return error.status_code if isinstance(error, APIStatusError) else None
