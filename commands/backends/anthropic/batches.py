"""Batches on Anthropic's Message Batches API, of a judge or an entrant.

A batch has no idempotency key, so sending it twice may cost twice: `create` sends it once. All
other calls are repeated on temporary failures. The key goes to nobody but the configured server:
a batch names an address of its results, which is not followed.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
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
from commands.backends.anthropic.requests import RequestForm
from commands.backends.anthropic.responder import batch_params_of
from commands.backends.remote.bodies import date_in
from commands.backends.remote.outcomes import (
    ORDER_REFUSED,
    broken_off,
    fate_of,
    newest_since,
    not_listing,
    uncertain,
)
from commands.errors import (
    BatchBusy,
    BatchGone,
    BatchRefused,
    BatchTooLarge,
    NotAnswering,
    ProviderError,
    ResultsLost,
)
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
            raise _not_created(error) from api.without_key(error)
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
        except anthropic.APIStatusError as error:
            if isinstance(why := api.provider_error(error), NotAnswering):
                return date_in(error.response.headers)
            raise not_listing(why) from api.without_key(error)
        except anthropic.APIError:
            return None

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return the state of a batch."""
        with api.translate_errors(), _named(provider_batch_id):
            return state_of(self._again.retrieve(provider_batch_id).read())

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""
        return newest_since(moment, self._page)

    def _page(self, after: str) -> tuple[Sequence[BatchState], bool]:
        with api.translate_errors():
            return page_of(self._again.list(limit=_PAGE, after_id=after or anthropic.omit).read())

    def results(self, provider_batch_id: str) -> Iterator[_Read | NoReply]:
        """Yield the answers in an ended batch's results, as one download has them."""
        if not self.retrieve(provider_batch_id).has_ended:
            raise ProviderError(f"batch {provider_batch_id} has not ended")
        try:
            with closing(self._download(provider_batch_id)) as response:
                yield from answers_in(response.iter_bytes(), self._read)
        except anthropic.NotFoundError as error:
            raise ResultsLost(provider_batch_id) from api.without_key(error)
        except (httpx2.RequestError, zlib.error) as error:
            raise broken_off(provider_batch_id, error) from None
        except anthropic.APIError as error:
            raise _not_downloaded(error) from api.without_key(error)

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Cancel the unanswered requests of a batch; an ended batch stays as it is."""
        with api.translate_errors(), _named(provider_batch_id):
            try:
                return state_of(self._again.cancel(provider_batch_id).read())
            except (anthropic.BadRequestError, anthropic.ConflictError):
                return self.retrieve(provider_batch_id)

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


@contextmanager
def _named(provider_batch_id: str) -> Iterator[None]:
    """Say that the provider has no batch of an id, or that there can be none."""
    try:
        yield
    except anthropic.NotFoundError as error:
        raise BatchGone(provider_batch_id) from api.without_key(error)
    except msgspec.DecodeError:
        raise
    except (ValueError, httpx2.InvalidURL) as error:  # the SDK's
        raise BatchGone(provider_batch_id) from error.with_traceback(None)


def _not_downloaded(error: anthropic.APIError) -> TourneyError:
    status = api.status_of(error)
    if status is not None and status < HTTPStatus.BAD_REQUEST:
        detail = f"the download of results is redirected (HTTP {status}), which is not followed"
        return NotAnswering(detail)
    return api.provider_error(error)


def _not_created(error: anthropic.APIError) -> TourneyError:
    """Return the error of a failed `create`: it tells whether the batch may exist."""
    detail, status = api.describe_error(error), api.status_of(error)
    was_sent = status is None or fate_of(status, api.kinds_of(error)) != "refused"
    if (fatal := api.fatal_error(error)) is not None:
        fatal.was_sent = was_sent
        return fatal
    if not api.may_have_arrived(error):
        return BatchBusy(detail, was_sent=False)
    if api.is_busy(error):
        return BatchBusy(detail, asked_s=api.asked_wait_s(error))
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return BatchTooLarge(detail, was_sent=was_sent)
    is_refused = status in ORDER_REFUSED
    return BatchRefused(detail, was_sent=was_sent) if is_refused else uncertain(detail)
