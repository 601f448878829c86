"""What becomes of a request to a server, and when a rejection is the request's own fault.

A server that is set up wrongly, or whose account has reached a limit, rejects whatever it is sent,
often with the status of an invalid request. Such rejections must not be recorded as final.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from commands.errors import BatchUncertain, NotAnswering, ProviderError
from commands.ports import NoReply
from commands.settings.api_keys import redacted
from ledger.errors import TourneyError
from ledger.events.judging import Fate
from ledger.identity import Digest

REJECTED: Final = frozenset({400, 403, 405, 410, 411, 413, 414, 415, 422, 431, 451})
"""The statuses of a request that would be rejected another time, too."""

ORDER_REFUSED: Final = frozenset({400, 404, 405, 413, 415, 422})
"""The statuses of an order for a batch that is not taken."""

_REFUSALS: Final[Mapping[int, frozenset[str]]] = {
    400: frozenset({"invalid_request_error", "BadRequestError", "INVALID_ARGUMENT"}),
    401: frozenset({"authentication_error", "invalid_api_key", "UNAUTHENTICATED"}),
    402: frozenset({"billing_error"}),
    403: frozenset({"permission_error", "PERMISSION_DENIED"}),
    404: frozenset({"not_found_error", "model_not_found", "NotFoundError", "NOT_FOUND"}),
    413: frozenset({"request_too_large"}),
    429: frozenset(
        {"rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"}
        | {"insufficient_quota", "tokens", "requests"}
    ),
    529: frozenset({"overloaded_error"}),
}
"""How an API itself says that it did nothing: the types and codes of Anthropic, OpenAI and Google,
and those of vLLM and SGLang, by status."""

_OWN_WORDS: Final = re.compile(
    r"https?://\S+"  # URLs
    r"|'[^']*'|\"[^\"]*\"|`[^`]*`"  # what is quoted of the request
    r"|\(request [\w-]+\)|\breq[_-][\w-]+"  # ids
    r"|\b[\w.:-]*\d[\w.:-]*"  # numbers, times, hexadecimal digits and further ids
)
_PASSING: Final = frozenset({408, 425, 429})  # of a client's faults
MOST_ALIKE: Final = 8  # rejections in the same words without an answer: the server is at fault
_MOST_UNLIKE: Final = 2 * MOST_ALIKE  # likewise in whatever words
Request = TypeVar("Request")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Unanswered:
    """Why a request has no answer; other requests may still get one."""

    detail: str
    fate: Fate = "refused"
    reason: Literal["errored", "rejected"] = "errored"
    is_certain: bool = True  # False: a rejection whose cause may be a server that answers others
    blames: TourneyError | None = None  # of a rejection: what is wrong if it comes to everything
    is_again: bool = False  # the server was busy: send it again, as another request


def fate_of(status: int, kinds: Iterable[object]) -> Fate:
    """Return the fate of a request that was answered with an error.

    A status tells nothing of the bill: a gateway may answer each of them after the work was done.
    A request is certainly refused only if the API itself says so, by a type or code of its own.
    """
    is_told = not _REFUSALS.get(status, frozenset[str]()).isdisjoint(map(str, kinds))
    return "refused" if is_told else "perhaps billed"


def uncertain(why: str) -> BatchUncertain:
    """Return the error for a batch that was sent, and of which nothing is known."""
    return BatchUncertain(f"{why}; the batch may still exist")


def failure_of_free_call(detail: str, status: int | None) -> ProviderError:
    """Return the error for a call that costs nothing; it tells whether asking again may help.

    Args:
        detail: What happened.
        status: The status of the answer; None: there was none.
    """
    is_redirected = status is not None and status < HTTPStatus.BAD_REQUEST  # to a page of a gateway
    is_server_fault = status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    may_pass = is_redirected or is_server_fault or status in _PASSING
    return NotAnswering(detail) if may_pass else ProviderError(detail)


def not_listing(why: TourneyError) -> TourneyError:
    """Return the error for a provider that refuses to list its batches."""
    if not isinstance(why, ProviderError):  # but the key's or the account's fault
        return why
    unsafe = "so a batch whose order is lost could not be found there"
    return ProviderError(f"the provider does not list batches ({why.why}), {unsafe}")


def broken_off(provider_batch_id: str, why: Exception) -> NotAnswering:
    """Return the error for a download of results that was cut off."""
    cause = type(why).__name__
    return NotAnswering(f"the results of batch {provider_batch_id} broke off ({cause})")


def undecodable(query_key: Digest, why: msgspec.DecodeError) -> NoReply:
    """Return why an answer that cannot be decoded is no reply; another one may be."""
    detail = redacted(f"the answer cannot be decoded ({why})")
    return NoReply(query_key, "errored", detail, "perhaps billed")


class TryAgain(Exception):
    """The server is busy, or was not reached; it may answer later."""

    def __init__(
        self,
        or_else: TourneyError | Unanswered,
        *,
        fate: Fate = "refused",
        is_limit: bool = False,
        asked_s: float | None = None,
    ) -> None:
        """Say how to go on.

        Args:
            or_else: What to raise, or what becomes of the request, when patience ends.
            fate: The request's fate until then.
            is_limit: The server takes no requests at present, whichever they are.
            asked_s: The wait that it asks for, in seconds; at a limit it holds for all requests.
        """
        super().__init__(or_else)
        self.or_else, self.fate, self.is_limit, self.asked_s = or_else, fate, is_limit, asked_s


class Stop(Exception):
    """No other request can succeed either; this one has the given fate."""

    def __init__(
        self, why: TourneyError, fate: Fate = "refused", *, unless_proven: bool = False
    ) -> None:
        """Take the error to raise; with `unless_proven` only if the server never answered."""
        super().__init__(why)
        self.why, self.fate, self.unless_proven = why, fate, unless_proven


class Settled(NamedTuple, Generic[Request, Answer]):
    """A request and what became of it."""

    request: Request
    answer: Answer | Unanswered


class HeldRejections(Generic[Request]):
    """Keeps rejections back until it is known whether the requests or the server are at fault.

    The requests are, once the server answers a request that was sent after the first rejection
    came. The server is, once too many came in the same words without such an answer, or too many in
    whatever words without any answer between them.
    """

    def __init__(self) -> None:
        self.has_answered = False  # the server has answered a request
        self._held: list[tuple[Request, Unanswered]] = []
        self._n_sent = 0  # when the first of them came
        self._n_alike = Counter[str]()  # of all since such an answer, by their words
        self._n_in_a_row = 0  # since any answer

    @property
    def blames_server(self) -> bool:
        """Whether so many were rejected that the server is at fault."""
        return self._n_most_alike >= MOST_ALIKE or self._n_in_a_row >= _MOST_UNLIKE

    @property
    def tally(self) -> str:
        """How many were rejected, for messages."""
        if self._n_in_a_row >= MOST_ALIKE:
            return f"{self._n_in_a_row} requests in a row"
        return f"{self._n_most_alike} requests in the same words"

    @property
    def _n_most_alike(self) -> int:
        return max(self._n_alike.values(), default=0)

    def add(self, request: Request, rejection: Unanswered, n_sent: int) -> None:
        """Hold a rejection.

        Args:
            request: What was rejected.
            rejection: In which words.
            n_sent: How many requests were sent until now.
        """
        if not self._held:
            self._n_sent = n_sent
        self._held.append((request, rejection))
        self._n_alike[_OWN_WORDS.sub("", rejection.detail)] += 1
        self._n_in_a_row += 1

    def answered(self, number: int) -> list[tuple[Request, Unanswered]]:
        """Return the rejections that are final since the request of a number was answered."""
        self.has_answered = True
        if self.blames_server:
            return []
        self._n_in_a_row = 0
        if number <= self._n_sent:
            return []
        self._n_alike.clear()
        return self._taken()

    def at_end(self, *, has_failed: bool) -> list[tuple[Request, Unanswered]]:
        """Return what is still held: final if the run went well, else left for another time."""
        held, self._n_sent = self._taken(), 0
        if has_failed:
            held = [(request, replace(each, reason="errored")) for request, each in held]
        return held

    def blame(self) -> TourneyError | None:
        """Return what is wrong with a server that rejected all and answered nothing, if known."""
        blames = [each.blames for _, each in self._held if not each.is_certain]
        return blames[0] if blames and None not in blames and not self.has_answered else None

    def _taken(self) -> list[tuple[Request, Unanswered]]:
        held, self._held = self._held, []
        return held
