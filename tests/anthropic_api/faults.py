"""What is to go wrong: answers to single calls, and shares of a batch's requests.

A fault waits at an endpoint for its turn; shares fall on requests by the hash of their custom_id.
"""

from collections.abc import Sequence
from threading import Event, Lock
from typing import Literal

import msgspec

from tests.anthropic_api.errors import ApiError
from tests.anthropic_api.prompt import share_of

Endpoint = Literal[
    "messages",
    "count_tokens",
    "batches.create",
    "batches.retrieve",
    "batches.list",
    "batches.results",
    "batches.cancel",
    "batches.delete",
    "models.retrieve",
]
Kind = Literal[
    "rate_limited",  # 429 with retry-after; nothing is done
    "spend_limit",  # 429 enforced_spend_limit_reached, without retry-after; nothing is done
    "no_credit",  # 400, an invalid request but for its words; nothing is done
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
    "pause_half",  # results: the second half comes delay_s later
]
Outcome = Literal[
    "succeeded", "errored", "expired", "canceled", "refused", "truncated", "unreadable"
]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong with the next `n` calls to an endpoint, after `skip` that go well."""

    endpoint: Endpoint | Literal["*"]
    kind: Kind
    n: int = 1
    skip: int = 0
    retry_after_s: float | None = None  # None: a second after a rate limit
    delay_s: float = 0.0
    at: float = 0.5  # the share of the results that comes first


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


_SPOILING: tuple[Outcome, ...] = (
    *("errored", "expired", "canceled"),
    *("refused", "truncated", "unreadable"),
)


class Programme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What POST /_faults takes: faults join those that wait, shares replace the former."""

    faults: tuple[Fault, ...] = ()
    shares: Shares | None = None
    clear: bool = False


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
                if fault.endpoint in {endpoint, "*"}:
                    self._waiting[place : place + 1] = _left_of(fault)
                    return None if fault.skip else fault
            return None


def _left_of(fault: Fault) -> list[Fault]:
    if fault.skip:
        return [msgspec.structs.replace(fault, skip=fault.skip - 1)]
    return [msgspec.structs.replace(fault, n=fault.n - 1)] if fault.n > 1 else []


def refusal_of(fault: Fault) -> ApiError | None:
    """Return the error that a fault answers before anything is done."""
    match fault.kind:
        case "rate_limited":
            headers = _asking_for(1.0 if fault.retry_after_s is None else fault.retry_after_s)
            return ApiError("rate_limit_error", "Number of requests exceeded.", headers=headers)
        case "spend_limit":
            code = "enforced_spend_limit_reached"
            return ApiError("rate_limit_error", "The spend limit is reached.", error_code=code)
        case "no_credit":
            words = "Your credit balance is too low to access the Anthropic API."
            return ApiError("invalid_request_error", words)
        case "server_error":
            headers = {} if fault.retry_after_s is None else _asking_for(fault.retry_after_s)
            return ApiError("api_error", "Internal server error", headers=headers)
        case "overloaded":
            return ApiError("overloaded_error", "Overloaded")
        case _:
            return None


def _asking_for(seconds: float) -> dict[str, str]:
    return {"retry-after": f"{seconds:g}"}
