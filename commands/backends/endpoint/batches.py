"""A batch judge on OpenAI's Batch API.

A batch is a file of requests and an order to work on it. Uploading a file is free, and repeated
after a failure; `create` sends the order once.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar
from weakref import finalize

import httpx2
import msgspec
import openai

from commands.backends.endpoint import _batch_replies as replies
from commands.backends.endpoint.refused_parameters import (
    LearntParameters,
    Parameters,
    adapted,
    is_told,
)
from commands.backends.endpoint.requests import PATH, ChatForm
from commands.backends.endpoint.server import Endpoint
from commands.backends.remote.bodies import (
    CONNECT_S,
    FREE_CALL_S,
    date_in,
    decode_json,
    inflated,
    lines_in,
    text_of,
)
from commands.backends.remote.outcomes import broken_off, newest_since, uncertain
from commands.errors import BatchGone, NotAnswering, ProviderError, ResultsLost
from commands.ports import Answer, BatchState, Reply
from ledger.events.registration import JudgeSettings
from ledger.events.requests import ParameterRefused
from ledger.identity import Digest, Json, canonical_json
from projections.verdicts.queries import JudgeQuery

_Told = TypeVar("_Told")

_ENDPOINT: Final = f"/v1{PATH}"  # OpenAI's name for the kind of request, wherever the server is
_PAGE: Final = 100
_RETRIES: Final = 5  # of calls that cost nothing
_NO_ID: Final = (ValueError, httpx2.InvalidURL)  # the SDK's errors for what cannot be an id


class OpenAIBatches:
    """Sends each batch at most once, and reads its results line by line."""

    def __init__(
        self, judge: JudgeSettings, server: Endpoint, *, refused: Sequence[ParameterRefused] = ()
    ) -> None:
        """Take the judge, its server, and what servers were found not to take."""
        self._form, self._server = ChatForm(judge), server
        self._learnt = LearntParameters(server.base_url, judge.model, refused)
        # by query what it goes without from now on: a rejection of it may have named a parameter
        self._suspected: dict[Digest, Parameters] = {}
        # by batch what its queries went without, if this process sent it
        self._went_without: dict[str, Mapping[Digest, Parameters]] = {}
        self._once = server.client()
        finalize(self, self._once.close)
        self._uploads = self._once.with_options(max_retries=_RETRIES)
        timeout = openai.Timeout(FREE_CALL_S, connect=CONNECT_S)
        self._again = self._uploads.with_options(timeout=timeout)

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Upload the queries, then order the batch once."""
        without = {query.query_key: self._without(query) for query in queries}
        file_id = self._upload(b"".join(map(self._line, queries)))
        try:
            body = self._once.batches.with_raw_response.create(
                completion_window="24h",
                endpoint="/v1/chat/completions",
                input_file_id=file_id,
                metadata=replies.metadata_of(query.query_key for query in queries),
            ).content
            state = decode_json(body, replies.SERVER_BATCH).state
        except openai.APIError as error:
            raise self._server.failure_of(error).of_order() from None
        except msgspec.DecodeError as error:
            raise uncertain(self._server.not_the_api(error).why) from error
        self._went_without[state.provider_batch_id] = without
        return state

    def _upload(self, content: bytes) -> str:
        """Upload the file of requests; return its id."""
        files = self._uploads.files.with_raw_response
        try:
            told = files.create(file=("queries.jsonl", content), purpose="batch").content
            return decode_json(told, replies.SERVER_FILE).id
        except openai.APIError as error:
            raise self._server.failure_of(error).of_refusal(was_sent=False) from None
        except msgspec.DecodeError as error:
            raise self._server.not_the_api(error) from error

    def n_bytes(self, query: JudgeQuery) -> int:
        """Return the bytes that a query adds to a batch's file."""
        return len(self._line(query))

    def _line(self, query: JudgeQuery) -> bytes:
        """Return the line of the file that asks a query; its custom_id is the query key."""
        line: Json = {
            "custom_id": query.query_key,
            "method": "POST",
            "url": _ENDPOINT,
            "body": adapted(self._form.body(query), self._without(query)),
        }
        return canonical_json(line) + b"\n"

    def _without(self, query: JudgeQuery) -> Parameters:
        return {**self._suspected.get(query.query_key, {}), **self._learnt.without}

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return the state of a batch."""
        batch = self._batch(provider_batch_id)
        if not batch.has_ended:
            return batch.state
        has_results = all(map(self._has, batch.result_files))
        return replace(batch.state, has_results=has_results)

    def _batch(self, name: str) -> replies.ServerBatch:
        batches = self._again.batches.with_raw_response
        return self._told(lambda: batches.retrieve(name).content, replies.SERVER_BATCH, name)

    def _has(self, file_id: str) -> bool:
        """Return whether the server still keeps a file."""
        try:
            self._again.files.with_raw_response.retrieve(file_id)
        except (openai.NotFoundError, *_NO_ID):
            return False
        except openai.APIError as error:
            raise self._server.failure_of(error).of_free_call() from None
        return True

    def now(self) -> datetime | None:
        """Return the time by the server's clock, also of a busy one; None if it does not tell it.

        Raises:
            TourneyError: The server refuses to list batches, and would not tell if it took one.
        """
        ask = self._again.with_options(max_retries=0).batches.with_raw_response
        try:
            return date_in(ask.list(limit=1).headers)
        except openai.APIError as error:
            failure = self._server.failure_of(error)
        return failure.time()

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""
        batches = self._again.batches.with_raw_response

        def page_after(name: str) -> tuple[Sequence[BatchState], bool]:
            after = name or openai.omit
            page = self._told(
                lambda: batches.list(limit=_PAGE, after=after).content, replies.BATCH_PAGE
            )
            return [batch.state for batch in page.data], page.has_more and bool(page.data)

        return newest_since(moment, page_after)

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Cancel the unanswered queries of a batch; an ended batch stays as it is."""
        batches = self._again.batches.with_raw_response

        def ask() -> bytes:
            try:
                return batches.cancel(provider_batch_id).content
            except (openai.BadRequestError, openai.ConflictError):
                return batches.retrieve(provider_batch_id).content

        return self._told(ask, replies.SERVER_BATCH, provider_batch_id).state

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield the answers in an ended batch's files, as one download has them."""
        batch = self._batch(provider_batch_id)
        if not batch.has_ended:
            raise ProviderError(f"batch {provider_batch_id} has not ended")
        digests: set[Digest] = set()
        is_whole = not batch.lacks_a_file
        went_without = self._went_without.get(batch.id, {})
        for file_id, n_least in batch.result_files.items():
            n_before, n_odd = len(digests), 0
            for line in self._lines(batch, file_id):
                answer = replies.answer_in(line, partial(self._refused_in, went_without))
                if answer is not None:
                    digests.add(answer.query_key)
                    yield self._with_news(answer, went_without.get(answer.query_key, {}))
                elif line.strip():
                    n_odd += 1
            is_whole = is_whole and batch.is_whole(len(digests) - n_before, n_least, n_odd)
        if is_whole and not batch.is_complete:
            yield from self._unanswered(batch, digests)

    def _refused_in(
        self,
        went_without: Mapping[Digest, Parameters],
        query_key: Digest,
        detail: str,
        told: object,
    ) -> Sequence[ParameterRefused] | None:
        """Learn from a rejection; a parameter is certain only if a field names it, as `RefusedIn`.

        Else it is suspected: the query goes without it, and if it is then answered, so do others.
        """
        without = went_without.get(query_key, {})
        sent = adapted(self._form.shared, without)
        found = self._learnt.refusals_in(detail, told, sent, without)
        if not found:
            return None
        if is_told(told):
            self._learnt.believe(found)
            return [*found.values()]
        self._suspected[query_key] = {**without, **found}
        return []

    def _with_news(self, answer: Answer, without: Parameters) -> Answer:
        """Return an answer with what it says of the parameters that its query went without."""
        if not isinstance(answer, Reply):
            return answer
        self._learnt.believe(without)
        return replace(answer, refused=self._learnt.news())

    def _unanswered(self, batch: replies.ServerBatch, told: set[Digest]) -> Iterator[Answer]:
        """Yield why the other queries of a batch that broke off have no answer.

        Only the file of requests names them.
        """
        if (requests_file := text_of(batch.input_file_id)) is None:
            raise ResultsLost(batch.id)
        for key in map(replies.query_key_in, self._lines(batch, requests_file)):
            if key is not None and key not in told:
                yield batch.unanswered(key)

    def _lines(self, batch: replies.ServerBatch, file_id: str) -> Iterator[bytes]:
        """Yield the lines of a file.

        Raises:
            ResultsLost: The server keeps the file no longer.
            NotAnswering: The download breaks off.
        """
        try:
            with self._again.files.with_streaming_response.content(file_id) as response:
                yield from lines_in(inflated(response.iter_bytes()))
        except (openai.NotFoundError, *_NO_ID):
            raise ResultsLost(batch.id) from None
        except (httpx2.RequestError, zlib.error) as error:
            raise broken_off(batch.id, error) from None
        except openai.APIError as error:
            raise self._server.failure_of(error).of_free_call() from None

    def _told(
        self,
        ask: Callable[[], bytes],
        decoder: msgspec.json.Decoder[_Told],
        provider_batch_id: str | None = None,
    ) -> _Told:
        """Return the answer to a free call; no frame of an error may show what the server quotes.

        Raises:
            BatchGone: The server does not have this batch.
            NotAnswering: It cannot be reached, has a fault of its own, or something between answers
                in its place.
            ProviderError: It does not take the call.
        """
        try:
            return decode_json(ask(), decoder)
        except openai.APIError as error:
            if provider_batch_id is not None and isinstance(error, openai.NotFoundError):
                raise BatchGone(provider_batch_id) from None
            raise self._server.failure_of(error).of_free_call() from None
        except msgspec.DecodeError as error:
            raise NotAnswering(self._server.not_the_api(error).why) from error
        except _NO_ID:
            raise BatchGone(provider_batch_id or "") from None
