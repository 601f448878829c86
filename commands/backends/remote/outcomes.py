"""What the status of an answer, or a broken connection, tells of a request's fate."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from commands.errors import BatchUncertain, NotAnswering, ProviderError
from commands.ports import BatchState, NoReply, Then
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

_PASSING: Final = frozenset({408, 425, 429})  # of a client's faults


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
    return NoReply(
        query_key,
        "errored",
        str(error),
        fate,
        then=then,
        error=error,
        asked_s=asked_s,
        is_certain=is_certain,
    )
