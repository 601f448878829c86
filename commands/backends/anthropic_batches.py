"""A judge that is asked through the Message Batches API.

A batch carries no idempotency key, so sending it again may be paying again: `create` does so only
where the provider certainly did nothing. Everything else may be repeated, and is.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from http import HTTPStatus
from json import JSONDecodeError
from typing import Final

import httpx2
from anthropic import (
    Anthropic,
    AnthropicError,
    APIConnectionError,
    APIError,
    APIStatusError,
    BadRequestError,
    NotFoundError,
)
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.shared import ErrorObject

from commands.backends.anthropic_client import (
    bare,
    in_our_words,
    provider_error,
    repeating,
    said,
    stop_of,
    was_sent,
)
from commands.backends.anthropic_pace import Pace, nothing_was_done, sent
from commands.backends.anthropic_request import RequestForm, read_message
from commands.errors import BatchGone, BatchRefused, BatchUncertain, ProviderError, ResultsLost
from commands.ports import Answer, BatchState, NoReply
from commands.settings import CacheTtl
from ledger.errors import TourneyError
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.judge_query import JudgeQuery

_PAGE: Final = 100
_READS: Final = 8  # of one batch's results
_FINAL: Final = frozenset({"invalid_request_error", "not_found_error", "request_too_large"})


class AnthropicBatches:
    """Sends each batch at most once, and reads its results line by line."""

    def __init__(
        self,
        client: Anthropic,
        judge: JudgeSettings,
        *,
        cache: CacheTtl,
        pace: Pace | None = None,
    ) -> None:
        self._form = RequestForm.of(judge, cache=cache)
        self._once = client.messages.batches
        self._again = repeating(client).messages.batches
        self._pace = pace or Pace()

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Send a batch, at most once."""
        requests = [self._form.in_batch(query) for query in queries]
        try:
            batch = sent(
                lambda: self._once.create(requests=requests), self._pace, passes=nothing_was_done
            )
        except APIError as error:
            raise _not_created(error) from bare(error)
        return _state(batch)

    def n_bytes(self, query: JudgeQuery) -> int:
        """Return the bytes that a batch grows by with a query."""
        return self._form.n_bytes(query)

    def look(self, provider_batch_id: str) -> BatchState:
        """Return how a batch is doing."""
        with in_our_words():
            try:
                return _state(self._again.retrieve(provider_batch_id))
            except NotFoundError as error:
                raise BatchGone(provider_batch_id) from bare(error)

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""
        with in_our_words():
            for batch in self._again.list(limit=_PAGE):
                if batch.created_at < moment:
                    return
                yield _state(batch)

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield an ended batch's answers; what was cut off is read again from the start."""
        state = self.look(provider_batch_id)
        if not state.has_ended:
            raise ProviderError(f"batch {provider_batch_id} has not ended")
        if not state.has_results:
            raise ResultsLost(_lost(provider_batch_id))
        read: set[str] = set()
        for attempt in range(_READS):
            self._pace.wait()
            yield from self._unread(provider_batch_id, read)
            if len(read) >= state.n_queries:  # a stream may end early without a sign
                return
            self._pace.back_off(attempt)
        raise ProviderError(
            f"of batch {provider_batch_id} only {len(read)} of {state.n_queries} results arrived"
        )

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Stop what is not yet answered; a batch that has ended stays as it is."""
        with in_our_words():
            try:
                return _state(self._again.cancel(provider_batch_id))
            except BadRequestError:
                return self.look(provider_batch_id)

    def _unread(self, provider_batch_id: str, read: set[str]) -> Iterator[Answer]:
        """Yield the answers that are not among those read, until the stream ends or is cut."""
        try:
            with closing(self._again.results(provider_batch_id)) as results:
                for result in results:
                    if result.custom_id not in read:
                        read.add(result.custom_id)
                        yield _answer(result)
        except NotFoundError as error:
            raise ResultsLost(_lost(provider_batch_id)) from bare(error)
        except (APIConnectionError, httpx2.TransportError, JSONDecodeError):
            return
        except APIError as error:
            raise provider_error(error) from bare(error)
        except AnthropicError as error:  # the SDK found that the batch names no results
            if self.look(provider_batch_id).has_results:
                raise ProviderError(str(error)) from error.with_traceback(None)
            raise ResultsLost(_lost(provider_batch_id)) from error.with_traceback(None)


def _lost(provider_batch_id: str) -> str:
    return f"the provider keeps the results of batch {provider_batch_id} no longer"


def _state(batch: MessageBatch) -> BatchState:
    counts = batch.request_counts
    n_done = counts.succeeded + counts.errored + counts.canceled + counts.expired
    has_ended = batch.processing_status == "ended"
    return BatchState(
        provider_batch_id=batch.id,
        created_at=batch.created_at,
        expires_at=batch.expires_at,
        has_ended=has_ended,
        n_queries=counts.processing + n_done,
        n_succeeded=counts.succeeded,
        n_errored=counts.errored,
        n_canceled=counts.canceled,
        n_expired=counts.expired,
        has_results=batch.results_url is not None or not has_ended,
    )


def _answer(response: MessageBatchIndividualResponse) -> Answer:
    key, result = Digest(response.custom_id), response.result
    match result.type:
        case "succeeded":
            return read_message(key, result.message)
        case "errored":
            return _errored(key, result.error.error)
        case "expired":
            return NoReply(key, "expired", "the batch expired before this query's turn")
        case "canceled":
            return NoReply(key, "canceled", "the batch was canceled before this query's turn")
        case unknown:  # the SDK does not check
            return NoReply(key, "errored", f"a result of type {unknown!r}")  # type: ignore[unreachable]  # as far as its types say


def _errored(key: Digest, error: ErrorObject) -> NoReply:
    """Return why a query failed; what is invalid now is so at every further attempt."""
    detail = f"{error.type}: {error.message}"
    return NoReply(key, "rejected" if error.type in _FINAL else "errored", detail)


def _not_created(error: APIError) -> TourneyError:
    """Return the error that says whether a batch may exist."""
    stop = stop_of(error)
    if stop is not None:
        return stop
    status = error.status_code if isinstance(error, APIStatusError) else None
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return BatchRefused(f"{said(error)}; lower [judge] batch_queries")
    if status == HTTPStatus.REQUEST_TIMEOUT or not _is_certain(error):
        return BatchUncertain(f"{said(error)}; the batch may exist all the same")
    return BatchRefused(said(error))


def _is_certain(error: APIError) -> bool:
    """Tell whether nothing was created: the provider said no, or never had the request."""
    if isinstance(error, APIStatusError):
        return error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR or nothing_was_done(error)
    return not was_sent(error)
