"""Judges and entrants on Anthropic's Messages API: one request, and what became of it."""

import json
import re
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

import msgspec
from anthropic import Anthropic, APIError
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answer_of, generated_in
from commands.backends.anthropic.requests import (
    RequestForm,
    batch_params_of,
    further_of,
    params_of,
)
from commands.backends.remote.bodies import TIMEOUT_S
from commands.backends.remote.outcomes import REJECTED, failed
from commands.errors import ConfigurationError, ProviderError
from commands.ports import (
    Answer,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Host,
    NoReply,
)
from commands.settings.schema import CacheTtl
from ledger.events.registration import Entrant, JudgeSettings
from ledger.identity import Digest
from projections.tournament.estimate import FRAME_TOKENS, n_bytes
from projections.verdicts.queries import JudgeQuery

_OF_THE_PROMPT: Final = re.compile(r"prompt is too long|content blocks? must be non-empty")
_Read = TypeVar("_Read")


class AnthropicMessages:
    """Sends requests of one judge or entrant, each once."""

    def __init__(self, client: Anthropic, asked: str, *, n_at_a_time: int, remedy: str) -> None:
        """Take the client, and in whose name it is asked.

        Args:
            client: The SDK's.
            asked: The judge or entrant, as messages name it.
            n_at_a_time: Requests under way, at most.
            remedy: What to do if the API does not take the effort.
        """
        self.host = Host(f"Anthropic, asked as {asked},", n_at_a_time, TIMEOUT_S)
        self._client, self._asked, self._remedy = client, asked, remedy

    def send(
        self,
        key: Digest,
        params: MessageCreateParamsNonStreaming,
        read: Callable[[bytes], _Read],
        further: object = None,
    ) -> _Read | NoReply:
        """Send a request once, and return what is read in the answer, or why there is none.

        Args:
            key: What identifies the request.
            params: What is asked.
            read: Reads the body of a message; it raises `msgspec.DecodeError` of anything else.
            further: Further keys of the request.
        """
        ask = self._client.messages.with_raw_response
        try:
            response = ask.create(**params, extra_body=further)
            body = response.read()
        except APIError as error:
            return self._failure(key, error)
        try:
            return read(body)
        except msgspec.DecodeError as error:
            if (within := api.error_within(body, response.http_response)) is not None:
                return self._failure(key, within)
            why = ProviderError(api.not_the_api(error))
            return failed(key, why, "perhaps billed", "stop", is_certain=False)

    def _failure(self, key: Digest, error: APIError) -> NoReply:
        failure = api.failure_of(error)
        detail, status = failure.detail, failure.status
        fault = ConfigurationError([f"{self._asked}: {detail}; {self._remedy}"])
        return failure.of_request(
            key,
            why=ProviderError(detail),
            remedy=fault if status in REJECTED and "effort" in detail else None,
            is_of_request=_OF_THE_PROMPT.search(detail) is not None,
        )


class AnthropicJudge:
    """Sends one request per query."""

    def __init__(
        self,
        client: Anthropic,
        judge: JudgeSettings,
        *,
        cache: CacheTtl,
        n_at_a_time: int,
    ) -> None:
        name, remedy = f"judge {judge.judge_id!r}", 'set another effort, or effort = "none"'
        self._messages = AnthropicMessages(client, name, n_at_a_time=n_at_a_time, remedy=remedy)
        self.host = self._messages.host
        self._form = RequestForm(judge, cache=cache)

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once."""
        key = query.query_key
        return self._messages.send(key, self._form.params(query), partial(answer_of, key))


class AnthropicResponder:
    """Sends one request per task."""

    def __init__(self, client: Anthropic, entrant: Entrant, *, n_at_a_time: int) -> None:
        """Take the client and the entrant."""
        name = f"entrant {entrant.entrant_id!r}"
        self.url = str(client.base_url)
        remedy = "change it in extra_body, or leave it out"
        self._messages = AnthropicMessages(client, name, n_at_a_time=n_at_a_time, remedy=remedy)
        self.host = self._messages.host

    def facts(self) -> None:
        """Return nothing: the API says nothing of itself."""

    def n_input_at_most(self, task: GenerationTask) -> int:
        """Return an upper bound on a request's tokens: a token has at least one byte."""
        return n_bytes(json.dumps(batch_params_of(task), ensure_ascii=False)) + FRAME_TOKENS

    def ask(self, task: GenerationTask) -> GeneratedText | GenerationFailure | NoReply:
        """Send a task once."""
        if not task.options.is_chat:
            why = "Anthropic's API takes no plain text: ask by the chat template"
            return NoReply(task.response_key, "rejected", why, "not sent")
        began_at = perf_counter()

        def read(body: bytes) -> GeneratedText | GenerationFailure | NoReply:
            return generated_in(task.response_key, body, elapsed_s=perf_counter() - began_at)

        return self._messages.send(task.response_key, params_of(task), read, further_of(task))
