"""The SDK's client, and what its errors tell of a request's fate.

No message or traceback may show the API key. Libraries below the SDK quote headers in their
errors, so no error of ours has one of theirs as its cause.
"""

import os
import re
from collections.abc import Callable, Mapping
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
    NotFoundError,
    Timeout,
)

from commands.backends.remote.bodies import (
    CONNECT_S,
    FREE_CALL_S,
    TIMEOUT_S,
    GuardedClient,
    date_in,
    decode_json,
    replace_surrogates,
    retry_after_s,
    was_not_sent,
)
from commands.backends.remote.outcomes import Failure, fate_of
from commands.errors import (
    BatchGone,
    ConfigurationError,
    NoCredentials,
    NotAnswering,
    ProviderError,
    SpendLimitReached,
)
from commands.settings.api_keys import ANTHROPIC_KEYS, first_set, redacted
from ledger.events.judging import Fate

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
    name = first_set(ANTHROPIC_KEYS)
    if name is None:
        raise NoCredentials(f"{' and '.join(ANTHROPIC_KEYS)} are not set")
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
        failure = failure_of(error)
        if failure.fatal is not None or failure.status is None:
            raise failure.fatal or ProviderError(failure.detail) from None


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


def _is_too_long(asked_s: float | None) -> bool:
    return asked_s is not None and asked_s > _LONGEST_WAIT_S


def told(ask: Callable[[], _T], provider_batch_id: str | None = None) -> _T:
    """Return the answer to a call that costs nothing; no frame of an error may show theirs.

    Raises:
        NoCredentials: The provider refuses the key.
        SpendLimitReached: The provider's spend limit is reached.
        BatchGone: It has no batch of this id, or there can be none.
        NotAnswering: The provider cannot be reached, has a fault of its own, or something between
            answers in its place.
        ProviderError: Any other failure.
    """
    try:
        return ask()
    except APIError as error:
        if provider_batch_id is not None and isinstance(error, NotFoundError):
            raise BatchGone(provider_batch_id) from None
        raise failure_of(error).of_free_call() from None
    except msgspec.DecodeError as error:
        raise NotAnswering(not_the_api(error)) from error
    except (ValueError, httpx2.InvalidURL):  # the SDK's, of what cannot be an id
        if provider_batch_id is None:
            raise
        raise BatchGone(provider_batch_id) from None


def not_the_api(why: msgspec.DecodeError) -> str:
    """Return a message for a reply that does not come from Anthropic's API."""
    return (
        f"the server does not reply like Anthropic's API ({why}); correct ANTHROPIC_BASE_URL, or"
        " bypass the proxy"
    )


def failure_of(error: APIError) -> Failure:
    """Return what the SDK's error of a call tells."""
    if not isinstance(error, APIStatusError):
        fate: Fate = "not sent" if was_not_sent(error.__cause__) else "perhaps billed"
        cause = type(error.__cause__ or error).__name__
        cut = f"the connection to {error.request.url.host} failed ({cause})"
        is_late = isinstance(error, APITimeoutError)
        return Failure("no answer from the provider in time" if is_late else cut, fate)
    status, detail = error.status_code, _detail(error)
    fatal: NoCredentials | SpendLimitReached | None = None
    # the SDK takes this for a RateLimitError, and would retry
    is_limited = (error.error_code or "").endswith("spend_limit_reached")
    is_poor = status == HTTPStatus.BAD_REQUEST and is_out_of_credit(error.api_message)
    if is_limited or is_poor or status == HTTPStatus.PAYMENT_REQUIRED:
        fatal = SpendLimitReached(detail)
    elif status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        fatal = NoCredentials(f"the provider refuses the key: {detail}")
    headers, fate = error.response.headers, fate_of(status, [error.type])
    return Failure(detail, fate, status, retry_after_s(headers), fatal, at=date_in(headers))


def is_out_of_credit(message: object) -> bool:
    """Return whether a message says that credit or limit is used up; no status code does."""
    return _NO_CREDIT.search(str(message)) is not None


def _detail(error: APIStatusError) -> str:
    """Describe an error in one line, without keys."""
    words = [f"HTTP {error.status_code}", error.type, error.error_code]
    if error.status_code != HTTPStatus.UNAUTHORIZED:  # some servers repeat parts of the key
        words.append(error.api_message)
    line = ": ".join(" ".join(replace_surrogates(str(word)).split()) for word in words if word)
    if _is_too_long(asked_s := retry_after_s(error.response.headers)):
        line += f"; it asks to wait {asked_s:g} s"
    return redacted(line if error.request_id is None else f"{line} (request {error.request_id})")


_STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


class ApiError(msgspec.Struct, frozen=True):
    """An error in the API's words."""

    type: str
    message: str = ""


class ErrorBody(msgspec.Struct, frozen=True):
    """An error in the place of a message."""

    error: ApiError


ERROR_BODY: Final = msgspec.json.Decoder(ErrorBody)


def error_within(body: bytes, answer: httpx2.Response) -> APIStatusError | None:
    """Return the error that a successful answer holds in place of a message; None: it has none."""
    try:
        error = decode_json(body, ERROR_BODY).error
    except msgspec.DecodeError:
        return None
    status = _STATUS_OF.get(error.type, HTTPStatus.INTERNAL_SERVER_ERROR)
    response = httpx2.Response(status, headers=answer.headers, request=answer.request)
    told: dict[str, object] = {"error": msgspec.to_builtins(error)}
    return APIStatusError(error.message, response=response, body=told)
