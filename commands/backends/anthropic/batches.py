"""A batch judge on Anthropic's Message Batches API.

A batch has no idempotency key, so sending it twice may cost twice: `create` resends only if the
provider certainly did nothing. All other calls are repeated on temporary failures.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final

import anthropic
import httpx2
import msgspec

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answers_in, page_of, state_of
from commands.backends.anthropic.requests import RequestForm
from commands.backends.remote.outcomes import Stop, TryAgain, broken_off, uncertain
from commands.backends.remote.pace import Pace
from commands.backends.remote.send import send_alone
from commands.errors import BatchGone, BatchRefused, ProviderError, ResultsLost
from commands.ports import Answer, BatchState
from commands.settings.schema import CacheTtl
from ledger.events.registration import JudgeSettings
from projections.verdicts.queries import JudgeQuery

_PAGE: Final = 100


class AnthropicBatches:
    """Sends each batch at most once, and reads its results line by line."""

    def __init__(
        self,
        client: anthropic.Anthropic,
        judge: JudgeSettings,
        *,
        cache: CacheTtl,
        pace: Pace | None = None,
    ) -> None:
        self._form = RequestForm(judge, cache=cache)
        self._once = client.messages.batches.with_raw_response
        self._batches = api.with_retries(client).messages.batches
        self._again = self._batches.with_raw_response
        self._pace = pace or Pace()

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Send a batch, at most once."""
        requests = [self._form.in_batch(query) for query in queries]

        def send(_: object) -> BatchState:
            try:
                return state_of(self._once.create(requests=requests).read())
            except anthropic.APIError as error:
                raise _not_created(error) from api.without_key(error)
            except msgspec.DecodeError as error:
                raise Stop(uncertain(api.not_the_api(error)), "perhaps billed") from error

        return send_alone("Anthropic", send, self._pace)

    def n_bytes(self, query: JudgeQuery) -> int:
        """Return the bytes that a query adds to a batch."""
        return self._form.n_bytes(query)

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return the state of a batch."""
        with api.translate_errors():
            try:
                return state_of(self._again.retrieve(provider_batch_id).read())
            except anthropic.NotFoundError as error:
                raise BatchGone(provider_batch_id) from api.without_key(error)

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""
        after_id, has_more = "", True
        while has_more:
            with api.translate_errors():
                page = self._again.list(limit=_PAGE, after_id=after_id or anthropic.omit).read()
                states, has_more = page_of(page)
            for state in states:
                if state.created_at < moment:
                    return
                after_id = state.provider_batch_id
                yield state

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield the answers in an ended batch's results, as one download has them."""
        state = self.retrieve(provider_batch_id)
        if not state.has_ended:
            raise ProviderError(f"batch {provider_batch_id} has not ended")
        if not state.has_results:
            raise ResultsLost(_results_lost(provider_batch_id))
        yield from self._downloaded(provider_batch_id)

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Cancel the unanswered queries of a batch; an ended batch stays as it is."""
        with api.translate_errors():
            try:
                return state_of(self._again.cancel(provider_batch_id).read())
            except anthropic.BadRequestError:
                return self.retrieve(provider_batch_id)

    def _downloaded(self, provider_batch_id: str) -> Iterator[Answer]:
        try:
            with self._batches.with_streaming_response.results(provider_batch_id) as response:
                yield from answers_in(response.iter_bytes())
        except anthropic.NotFoundError as error:
            raise ResultsLost(_results_lost(provider_batch_id)) from api.without_key(error)
        except httpx2.TransportError as error:
            raise broken_off(provider_batch_id, error) from None
        except anthropic.APIError as error:
            raise api.provider_error(error) from api.without_key(error)
        except anthropic.AnthropicError as error:  # the SDK found no results URL
            if self.retrieve(provider_batch_id).has_results:
                raise ProviderError(str(error)) from error.with_traceback(None)
            raise ResultsLost(_results_lost(provider_batch_id)) from error.with_traceback(None)


def _results_lost(provider_batch_id: str) -> str:
    return f"the provider no longer keeps the results of batch {provider_batch_id}"


def _not_created(error: anthropic.APIError) -> Stop | TryAgain:
    """Return how to go on after a failed `create`: it tells whether the batch may exist."""
    if (fatal := api.fatal_error(error)) is not None:
        return Stop(fatal)
    detail, status = api.describe_error(error), api.status_of(error)
    if api.is_busy(error) or not api.may_have_arrived(error):
        asked_s = api.asked_wait_s(error)
        return TryAgain(BatchRefused(detail), is_limit=api.is_busy(error), asked_s=asked_s)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Stop(BatchRefused(f"{detail}; lower [judge] batch_queries"))
    is_refused = status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR
    if is_refused and status != HTTPStatus.REQUEST_TIMEOUT:
        return Stop(BatchRefused(detail))
    return Stop(uncertain(detail), "perhaps billed")
