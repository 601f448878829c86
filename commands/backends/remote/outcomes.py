"""What becomes of a request to a server, and when a rejection is the request's own fault.

A server that is set up wrongly, or whose account has reached a limit, rejects whatever it is sent,
often with the status of an invalid request. Such rejections must not be recorded as final.
"""

import re
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

REJECTED: Final = frozenset({400, 413, 422})  # the statuses of an invalid request
ORDER_REFUSED: Final = REJECTED | {404, 405, 415}  # and of a batch that is not taken
_REQUEST_ID: Final = re.compile(r" \(request [\w-]+\)$")  # each rejection has its own
_PASSING: Final = frozenset({408, 425, 429})  # of a client's faults
MOST_ALIKE: Final = 8  # rejections in the same words and in a row: the server is at fault
Request = TypeVar("Request")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Unanswered:
    """Why a request has no answer; other requests may still get one."""

    detail: str
    fate: Fate = "refused"
    reason: Literal["errored", "rejected"] = "errored"
    is_certain: bool = True  # False: a rejection whose cause may be the server


def uncertain(why: str) -> BatchUncertain:
    """Return the error for a batch that was sent, and of which nothing is known."""
    return BatchUncertain(f"{why}; the batch may still exist")


def failure_of_free_call(detail: str, status: int | None) -> ProviderError:
    """Return the error for a call that costs nothing; it tells whether asking again may help.

    Args:
        detail: What happened.
        status: The status of the answer; None: there was none.
    """
    is_server_fault = status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    may_pass = is_server_fault or status in _PASSING
    return NotAnswering(detail) if may_pass else ProviderError(detail)


def broken_off(provider_batch_id: str, why: Exception) -> NotAnswering:
    """Return the error for a download of results that was cut off."""
    cause = type(why).__name__
    return NotAnswering(f"the results of batch {provider_batch_id} broke off ({cause})")


def undecodable(query_key: Digest, why: msgspec.DecodeError) -> NoReply:
    """Return why an answer that cannot be decoded is no reply; another one may be."""
    detail = redacted(f"the answer cannot be decoded ({why})")
    return NoReply(query_key, "errored", detail, "perhaps billed")


class TryAgain(Exception):
    """The server surely did not answer this request, and may do so later."""

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
    came, or rejects another for a different reason. The server is, once so many are alike.
    """

    def __init__(self) -> None:
        self._held: list[tuple[Request, Unanswered]] = []
        self._n_sent = 0  # when the first of them came
        self._message, self._n_alike = "", 0  # of all in a row, held or not

    @property
    def blames_server(self) -> bool:
        """Whether so many rejections are alike that the server is at fault."""
        return self._n_alike >= MOST_ALIKE

    def add(
        self, request: Request, rejection: Unanswered, n_sent: int
    ) -> list[tuple[Request, Unanswered]]:
        """Hold a rejection; return those that turn out to be final by it.

        Args:
            request: What was rejected.
            rejection: In which words.
            n_sent: How many requests were sent until now.
        """
        if not self._held:
            self._n_sent = n_sent
        self._held.append((request, rejection))
        message = _REQUEST_ID.sub("", rejection.detail)
        if self._n_alike and message != self._message and not self.blames_server:
            return self._clear()
        self._message, self._n_alike = message, self._n_alike + 1
        return []

    def answered(self, number: int) -> list[tuple[Request, Unanswered]]:
        """Return the rejections that are final since the request of a number was answered."""
        return self._clear() if number > self._n_sent else []

    def at_end(self, *, has_failed: bool) -> list[tuple[Request, Unanswered]]:
        """Return what is still held: final if the run went well, else left for another time."""
        held, self._held, self._n_sent = self._held, [], 0
        if has_failed:
            held = [(request, replace(each, reason="errored")) for request, each in held]
        return held

    def _clear(self) -> list[tuple[Request, Unanswered]]:
        held, self._held, self._n_alike = self._held, [], 0
        return held
