"""Batches on Anthropic's Message Batches API, of a judge or an entrant.

A batch has no idempotency key, so sending it twice may cost twice: `create` sends it once. All
other calls are repeated on temporary failures. The key goes to nobody but the configured server:
a batch names an address of its results, which is not followed.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Final, Generic, TypeVar, cast
from urllib.parse import quote

import anthropic
import httpx2
import msgspec
from anthropic.types.messages.batch_create_params import Request

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import (
    answer_of,
    answers_in,
    generated_in,
    page_of,
    state_of,
)
from commands.backends.anthropic.messages import RequestForm, batch_params_of
from commands.backends.remote.bodies import date_in
from commands.backends.remote.outcomes import broken_off, newest_since, uncertain
from commands.errors import NotAnswering, ProviderError, ResultsLost
from commands.ports import (
    BatchState,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    NoReply,
    Reply,
    key_of,
)
from commands.settings.schema import CacheTtl
from ledger.errors import TourneyError
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.verdicts.queries import JudgeQuery

_PAGE: Final = 100
_COMMA: Final = 1  # between two requests of a batch
_STREAMED: Final = {"Accept": "application/binary", "X-Stainless-Raw-Response": "stream"}


_Asked = TypeVar("_Asked", bound=JudgeQuery | GenerationTask)
_Read = TypeVar("_Read")


class AnthropicBatches(Generic[_Asked, _Read]):
    """Sends each batch at most once, and reads its results line by line."""

    def __init__(
        self,
        client: anthropic.Anthropic,
        params_of: Callable[[_Asked], Mapping[str, object]],
        read: Callable[[Digest, bytes], _Read | NoReply],
    ) -> None:
        """Take the client, how a request is written, and how a message that answers it is read."""
        self._params_of, self._read = params_of, read
        self._once = client.messages.batches.with_raw_response
        self._client = api.with_retries(client)
        self._again = self._client.messages.batches.with_raw_response

    def create(self, requests: Sequence[_Asked], /) -> BatchState:
        """Send a batch once."""
        written = [self._in_batch(request) for request in requests]
        try:
            return state_of(self._once.create(requests=written).read())
        except anthropic.APIError as error:
            raise api.failure_of(error).of_order() from None
        except msgspec.DecodeError as error:
            raise uncertain(api.not_the_api(error)) from error

    def n_bytes(self, request: _Asked, /) -> int:
        """Return the bytes that a request adds to a batch, as the SDK writes it."""
        written = self._in_batch(request)
        return len(json.dumps(written, ensure_ascii=False, separators=(",", ":")).encode()) + _COMMA

    def _in_batch(self, request: _Asked) -> Request:
        """Return a request as a batch has it; its key is its custom_id."""
        return cast("Request", {"custom_id": key_of(request), "params": self._params_of(request)})

    def now(self) -> datetime | None:
        """Return the time by the provider's clock, also of a busy one; None if it does not tell it.

        Raises:
            TourneyError: The provider refuses to list batches, and would not tell if it took one.
        """
        ask = self._client.with_options(max_retries=0).messages.batches.with_raw_response
        try:
            return date_in(ask.list(limit=1).headers)
        except anthropic.APIError as error:
            failure = api.failure_of(error)
        return failure.time()

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return the state of a batch."""
        ask = partial(self._again.retrieve, provider_batch_id)
        return api.told(lambda: state_of(ask().read()), provider_batch_id)

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""

        def page_after(name: str) -> tuple[Sequence[BatchState], bool]:
            ask = partial(self._again.list, limit=_PAGE, after_id=name or anthropic.omit)
            return api.told(lambda: page_of(ask().read()))

        return newest_since(moment, page_after)

    def results(self, provider_batch_id: str) -> Iterator[_Read | NoReply]:
        """Yield the answers in an ended batch's results, as one download has them."""
        if not self.retrieve(provider_batch_id).has_ended:
            raise ProviderError(f"batch {provider_batch_id} has not ended")
        try:
            with closing(self._download(provider_batch_id)) as response:
                yield from answers_in(response.iter_bytes(), self._read)
        except anthropic.NotFoundError:
            raise ResultsLost(provider_batch_id) from None
        except (httpx2.RequestError, zlib.error) as error:
            raise broken_off(provider_batch_id, error) from None
        except anthropic.APIError as error:
            raise _not_downloaded(error) from None

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Cancel the unanswered requests of a batch; an ended batch stays as it is."""

        def ask() -> BatchState:
            try:
                return state_of(self._again.cancel(provider_batch_id).read())
            except (anthropic.BadRequestError, anthropic.ConflictError):
                return state_of(self._again.retrieve(provider_batch_id).read())

        return api.told(ask, provider_batch_id)

    def _download(self, provider_batch_id: str) -> anthropic.APIResponse[bytes]:
        """Begin a download of results; the SDK's own would follow whatever address a batch names.

        A redirect is not followed, either: there is nowhere else to go with the key.
        """
        return self._client.get(
            f"/v1/messages/batches/{quote(provider_batch_id, safe='')}/results",
            cast_to=anthropic.APIResponse[bytes],
            options={"headers": _STREAMED, "follow_redirects": False},
        )


def judge_batches(
    client: anthropic.Anthropic, judge: JudgeSettings, *, cache: CacheTtl
) -> AnthropicBatches[JudgeQuery, Reply]:
    """Return the batches of a judge."""
    return AnthropicBatches(client, RequestForm(judge, cache=cache).params, answer_of)


def entrant_batches(
    client: anthropic.Anthropic,
) -> AnthropicBatches[GenerationTask, GeneratedText | GenerationFailure]:
    """Return the batches of entrants."""
    return AnthropicBatches(client, batch_params_of, generated_in)


def _not_downloaded(error: anthropic.APIError) -> TourneyError:
    failure = api.failure_of(error)
    if failure.status is not None and failure.status < HTTPStatus.BAD_REQUEST:
        moved = f"is redirected (HTTP {failure.status}), which is not followed"
        return NotAnswering(f"the download of results {moved}")
    return failure.of_free_call()
