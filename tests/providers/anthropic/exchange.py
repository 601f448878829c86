"""A request and its answer, apart from sockets, and what is to go wrong with them.

A fault waits at an endpoint for its turn; shares fall on requests by the hash of their custom_id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Final, Literal

import msgspec

from tests.providers.anthropic.prompt import ApiError, Json, invalid, not_found, share_of

Endpoint = Literal[
    "messages",
    "count_tokens",
    "batches.create",
    "batches.retrieve",
    "batches.list",
    "batches.results",
    "batches.cancel",
    "models.list",
]
Kind = Literal[
    "rate_limited",  # 429 with retry-after; nothing is done
    "spend_limit",  # 429 enforced_spend_limit_reached, without retry-after; nothing is done
    "no_credit",  # 400, an invalid request but for its words; nothing is done
    "usage_limit",  # likewise, as a workspace's own limit is told
    "too_large",  # 413; nothing is done
    "page",  # 200 and a web page, as by a proxy; nothing is done
    "server_error",  # 500, with retry-after where one is given; nothing is done
    "overloaded",  # 529; nothing is done
    "cut_before",  # the connection ends; nothing is done
    "cut_after",  # done, and the connection ends without an answer
    "error_after",  # done, and the answer is 500 all the same
    "late",  # done, and answered delay_s later
    "too_late",  # done, and `impatient` clients do not wait for the answer
    "cut_half",  # done, and the connection ends in the middle of the answer
    "cut_quietly",  # results: whole lines only and a proper end, yet half of them are missing
]
Outcome = Literal[
    "succeeded", "errored", "expired", "canceled", "refused", "truncated", "unreadable"
]


USAGE_LIMIT: Final = (
    "You have reached your specified API usage limits. You will regain access on 2026-12-01 at"
    " 00:00 UTC."
)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong with the next `n` calls to an endpoint, after `skip` that go well."""

    endpoint: Endpoint
    kind: Kind
    n: int = 1
    skip: int = 0
    retry_after_s: float | None = None  # None: a second after a rate limit
    delay_s: float = 0.0


class Shares(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of requests that ends in each way other than well."""

    errored: float = 0.0
    expired: float = 0.0
    canceled: float = 0.0
    refused: float = 0.0
    truncated: float = 0.0
    unreadable: float = 0.0
    first_attempts_only: bool = False
    error_type: str = "api_error"

    def outcome_of(self, name: str, *, is_first: bool) -> Outcome:
        """Return what becomes of a request: it is the same for a name, whenever asked."""
        if self.first_attempts_only and not is_first:
            return "succeeded"
        place, reached = share_of("outcome", name), 0.0
        for outcome in _SPOILING:
            reached += getattr(self, outcome)
            if place < reached:
                return outcome
        return "succeeded"


_SPOILING: Final[tuple[Outcome, ...]] = (
    *("errored", "expired", "canceled"),
    *("refused", "truncated", "unreadable"),
)


class FaultPlan:
    """The faults that wait, and the shares that hold."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Fault] = []
        self._cleared = Event()
        self.shares = Shares()

    def inject(self, faults: Sequence[Fault] = (), *, shares: Shares | None = None) -> None:
        """Add faults behind those that wait; set the shares, if given."""
        with self._lock:
            self._waiting.extend(faults)
            self._cleared.clear()
            self.shares = self.shares if shares is None else shares

    def clear(self) -> None:
        """Let everything go well again, and late answers come."""
        with self._lock:
            self._waiting.clear()
            self.shares = Shares()
            self._cleared.set()

    def wait(self, seconds: float) -> None:
        """Be late, unless everything is to go well."""
        self._cleared.wait(seconds)

    def take(self, endpoint: Endpoint) -> Fault | None:
        """Return the fault whose turn it is at this call, and count it off."""
        with self._lock:
            for place, fault in enumerate(self._waiting):
                if fault.endpoint == endpoint:
                    self._waiting[place : place + 1] = _left_of(fault)
                    return None if fault.skip else fault
            return None


def _left_of(fault: Fault) -> list[Fault]:
    if fault.skip:
        return [msgspec.structs.replace(fault, skip=fault.skip - 1)]
    return [msgspec.structs.replace(fault, n=fault.n - 1)] if fault.n > 1 else []


def refusal_of(fault: Fault) -> ApiError | None:
    """Return the error that a fault answers before anything is done."""
    wait_s, kind = fault.retry_after_s, "invalid_request_error"
    match fault.kind:
        case "rate_limited":
            headers = {"retry-after": f"{1.0 if wait_s is None else wait_s:g}"}
            return ApiError("rate_limit_error", "Number of requests exceeded.", headers=headers)
        case "spend_limit":
            code = "enforced_spend_limit_reached"
            return ApiError("rate_limit_error", "The spend limit is reached.", error_code=code)
        case "no_credit":
            return ApiError(kind, "Your credit balance is too low to access the Anthropic API.")
        case "usage_limit":
            return ApiError(kind, USAGE_LIMIT)
        case "too_large":
            return ApiError("request_too_large", "Request exceeds the maximum size")
        case "server_error":
            headers = {} if wait_s is None else {"retry-after": f"{wait_s:g}"}
            return ApiError("api_error", "Internal server error", headers=headers)
        case "overloaded":
            return ApiError("overloaded_error", "Overloaded")
        case _:
            return None


@dataclass(frozen=True)
class Request:
    """A request as it came in; header names are in small letters."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """The API key, or the token, or nothing."""
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or token

    def json(self) -> Json:
        """Return the body.

        Raises:
            ApiError: It is no JSON object (400).
        """
        try:
            return msgspec.json.decode(self.body, type=Json)
        except msgspec.DecodeError as error:
            raise invalid(f"The request body is not valid JSON: {error}") from error

    def route(self) -> tuple[Endpoint, str]:
        """Return the endpoint, and the id of the batch that it is asked about, if it is.

        Raises:
            ApiError: There is none at the path (404).
        """
        match self.method, *self.path.removeprefix("/v1/").split("/"):
            case "POST", "messages":
                return "messages", ""
            case "POST", "messages", "count_tokens":
                return "count_tokens", ""
            case "GET", "models":
                return "models.list", ""
            case "POST", "messages", "batches":
                return "batches.create", ""
            case "GET", "messages", "batches":
                return "batches.list", ""
            case "GET", "messages", "batches", name:
                return "batches.retrieve", name
            case "GET", "messages", "batches", name, "results":
                return "batches.results", name
            case "POST", "messages", "batches", name, "cancel":
                return "batches.cancel", name
            case _:
                raise not_found(f"Not found: {self.method} {self.path}")


@dataclass(frozen=True)
class Answer:
    """An answer, and what is to go wrong as it is sent."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Fault | None = None


def answer_of(value: object, *, status: int = 200) -> Answer:
    """Return an answer whose body is the JSON of a value."""
    return Answer(status, msgspec.json.encode(value), {"content-type": "application/json"})
