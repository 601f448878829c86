"""What a call that failed tells: of a request's fate, of a batch, and of whether to ask again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from commands.errors import (
    BatchBusy,
    BatchRefused,
    BatchTooLarge,
    BatchUncertain,
    NoCredentials,
    NotAnswering,
    ProviderError,
    SpendLimitReached,
)
from commands.ports import BatchState, NoReply, Then
from commands.settings.api_keys import redacted
from ledger.errors import TourneyError
from ledger.events.judging import Fate
from ledger.identity import Digest

REJECTED: Final = frozenset({400, 403, 405, 410, 411, 413, 414, 415, 422, 431, 451})
"""The statuses of a request that would be rejected another time, too."""

_ORDER_REFUSED: Final = frozenset({400, 404, 405, 413, 415, 422})  # for a batch that is not taken
_ORDER_BUSY: Final = frozenset({429, 529})
_BUSY: Final = _ORDER_BUSY | {503}  # a full or starting server
_PASSING: Final = frozenset({408, 425, 429})  # of a client's faults

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


def fate_of(status: int, kinds: Iterable[object]) -> Fate:
    """Return the fate of a request that was answered with an error.

    A status tells nothing of the bill: a gateway may answer each of them after the work was done.
    A request is certainly refused only if the API itself says so, by a type or code of its own.
    """
    is_told = not _REFUSALS.get(status, frozenset[str]()).isdisjoint(map(str, kinds))
    return "refused" if is_told else "perhaps billed"


@dataclass(frozen=True)
class Failure:
    """A call that failed, as either SDK tells it."""

    detail: str  # in one line, without keys
    fate: Fate
    status: int | None = None  # of the answer; None: there was none
    asked_s: float | None = None  # the wait that the server asks for
    fatal: NoCredentials | SpendLimitReached | None = None  # why no other request can succeed
    param: object = None  # the parameter that the server names, if it names one
    at: datetime | None = None  # by the server's clock

    def of_free_call(self) -> TourneyError:
        """Return the error for a call that costs nothing; it tells whether asking again may help.

        A redirect leads to a page of a gateway.
        """
        is_passing = self.status is None or not (
            HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
        )
        may_pass = is_passing or self.status in _PASSING
        return self.fatal or (NotAnswering if may_pass else ProviderError)(self.detail)

    def time(self) -> datetime | None:
        """Return the time by the clock of a server that does not list its batches now.

        Raises:
            TourneyError: It refuses to list them, and would not tell if it took one.
        """
        why = self.of_free_call()
        if isinstance(why, NotAnswering):
            return self.at
        if isinstance(why, ProviderError):  # not the key's or the account's fault
            unsafe = "so a batch whose order is lost could not be found there"
            why = ProviderError(f"the provider does not list batches ({why.why}), {unsafe}")
        raise why

    def of_order(self) -> TourneyError:
        """Return the error of a failed order for a batch: it tells whether the batch may exist."""
        if self.fate == "not sent":
            return BatchBusy(self.detail, was_sent=False)
        if self.status in _ORDER_BUSY and self.fatal is None:
            return BatchBusy(self.detail, asked_s=self.asked_s)
        if self.fatal is None and self.status not in _ORDER_REFUSED:
            return uncertain(self.detail)
        return self.of_refusal(was_sent=self.fate != "refused")

    def of_refusal(self, *, was_sent: bool) -> TourneyError:
        """Return the error for a batch that the server says it did not take."""
        if self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return BatchTooLarge(self.detail, was_sent=was_sent)
        if self.fatal is not None:
            self.fatal.was_sent = was_sent
            return self.fatal
        return BatchRefused(self.detail, was_sent=was_sent)

    def of_request(
        self,
        key: Digest,
        *,
        why: TourneyError,
        remedy: TourneyError | None,
        is_of_request: bool,
    ) -> NoReply:
        """Return what becomes of a request.

        Args:
            key: Names the request.
            why: What is wrong, if other requests would meet it, too.
            remedy: Likewise, if a setting is wrong.
            is_of_request: Whether the server's words say that this request alone is at fault.
        """
        if self.fate == "not sent":
            return failed(key, why, self.fate, "ask again")
        if self.fatal is not None and self.status != HTTPStatus.FORBIDDEN:
            return failed(key, self.fatal, self.fate, "stop")
        if self.status in _BUSY:
            return failed(key, why, self.fate, "wait", asked_s=self.asked_s)
        is_moved = self.status is not None and self.status < HTTPStatus.BAD_REQUEST
        if remedy is not None or is_moved or self.status == HTTPStatus.NOT_FOUND:
            return failed(key, remedy or why, self.fate, "stop")
        if self.status not in REJECTED:
            return NoReply(key, "errored", self.detail, self.fate)  # perhaps of this request only
        return NoReply(
            key, "rejected", self.detail, self.fate, error=self.fatal, is_certain=is_of_request
        )


def failed(
    query_key: Digest,
    error: TourneyError,
    fate: Fate,
    then: Then,
    *,
    asked_s: float | None = None,
    is_certain: bool = True,
) -> NoReply:
    """Return what becomes of a request because of an error that others would meet, too."""
    return NoReply(query_key, "errored", str(error), fate, then, error, asked_s, is_certain)


def undecodable(query_key: Digest, why: msgspec.DecodeError) -> NoReply:
    """Return why an answer that cannot be decoded is no reply; another one may be."""
    detail = redacted(f"the answer cannot be decoded ({why})")
    return NoReply(query_key, "errored", detail, "perhaps billed")


def uncertain(why: str) -> BatchUncertain:
    """Return the error for a batch that was sent, and of which nothing is known."""
    return BatchUncertain(f"{why}; the batch may still exist")


def broken_off(provider_batch_id: str, why: Exception) -> NotAnswering:
    """Return the error for a download of results that was cut off."""
    cause = type(why).__name__
    return NotAnswering(f"the results of batch {provider_batch_id} broke off ({cause})")


def newest_since(
    moment: datetime, page_after: Callable[[str], tuple[Sequence[BatchState], bool]]
) -> Iterator[BatchState]:
    """Yield the batches created at or after a moment, the newest first.

    Args:
        moment: The earliest time of creation.
        page_after: Returns a page of the list behind a batch, and whether there are more.
    """
    after, has_more = "", True
    while has_more:
        states, has_more = page_after(after)
        for state in states:
            if state.created_at < moment:
                return
            after = state.provider_batch_id
            yield state
