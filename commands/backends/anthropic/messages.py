"""Judges and entrants on Anthropic's Messages API: a request, its tokens, and what became of it.

Sampling settings are never sent: the API rejects them since its version of 2026-10-21.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Final, Literal, TypeVar, cast, get_args

import msgspec
from anthropic import Anthropic, APIError, types
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answer_of, generated_in
from commands.backends.anthropic.client import told, with_retries
from commands.backends.remote.bodies import TIMEOUT_S, decode_json
from commands.backends.remote.outcomes import REJECTED, failed
from commands.entrants.chats import prompt_messages
from commands.errors import ConfigurationError, ProviderError
from commands.ports import (
    Answer,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Host,
    NoReply,
    TokenCounter,
)
from commands.settings.schema import CacheTtl, Effort
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.values import Count
from ledger.identity import Digest, Json
from projections.tournament.estimate import FRAME_TOKENS, n_bytes
from projections.verdicts.queries import JudgeQuery


class RequestForm:
    """The settings that all requests of one judge share."""

    def __init__(self, judge: JudgeSettings, *, cache: CacheTtl) -> None:
        """Set the form of a judge's requests.

        Args:
            judge: The judge, with parameters `effort`, `max_tokens` and `protocol`.
            cache: How long the provider keeps the system text, which a dimension's queries share.
        """
        parameters = dict(judge.parameters)
        self.model, self.cache = judge.model, cache
        self.max_tokens = int(parameters["max_tokens"])
        self._effort = _effort(judge, parameters["effort"])
        self._has_schema = judge.protocol == "schema"

    def params(self, query: JudgeQuery) -> MessageCreateParamsNonStreaming:
        """Return the parameters of a request."""
        counted = self.counted(query)
        params = {"model": self.model, "max_tokens": self.max_tokens, **counted}
        return cast("MessageCreateParamsNonStreaming", params)

    def counted(self, query: JudgeQuery) -> types.MessageCountTokensParams:
        """Return the parameters of a request to count the input tokens."""
        params: types.MessageCountTokensParams = {
            "model": self.model,
            "system": [self._system(query)],
            "messages": [{"role": "user", "content": query.user}],
        }
        if output_config := self._output_config(query):
            params["output_config"] = output_config
        return params

    def _output_config(self, query: JudgeQuery) -> types.OutputConfigParam:
        """Return the effort, and the schema of a reply if the protocol is one."""
        if not self._has_schema:
            return self._effort
        schema: dict[str, object] = {**query.reply_schema}
        return {**self._effort, "format": {"type": "json_schema", "schema": schema}}

    def _system(self, query: JudgeQuery) -> types.TextBlockParam:
        block: types.TextBlockParam = {"type": "text", "text": query.system}
        mark = _MARKS[self.cache]
        return block if mark is None else {**block, "cache_control": mark}


_MARKS: Final[Mapping[CacheTtl, types.CacheControlEphemeralParam | None]] = {
    "off": None,
    "5m": {"type": "ephemeral"},
    "1h": {"type": "ephemeral", "ttl": "1h"},
}


def _effort(judge: JudgeSettings, effort: object) -> types.OutputConfigParam:
    """Return the effort, whose default differs by model."""
    if effort not in get_args(Effort):
        raise ValueError(f"judge {judge.judge_id!r} has an unknown effort: {effort!r}")
    if effort == "none":
        return {}
    return {"effort": cast("Literal['low', 'medium', 'high', 'xhigh', 'max']", effort)}


def params_of(task: GenerationTask) -> MessageCreateParamsNonStreaming:
    """Return the parameters of a task's request; the API samples as it likes."""
    entrant, options = task.entrant, task.options
    prompt = entrant.chosen.around(task.prompt_text)
    messages = task.messages or prompt_messages(entrant.chosen.system, prompt)
    told = [{"role": role, "content": text} for role, text in messages if role != "system"]
    params: dict[str, object] = {
        "model": entrant.weights,
        "max_tokens": entrant.max_new_tokens,
        "messages": told,
    }
    if system := [{"type": "text", "text": text} for role, text in messages if role == "system"]:
        params["system"] = system
    if options.stop:
        params["stop_sequences"] = [*options.stop]
    return cast("MessageCreateParamsNonStreaming", params)


def batch_params_of(task: GenerationTask) -> Mapping[str, object]:
    """Return the parameters of a task's request in a batch, with its further keys."""
    return {**params_of(task), **(further_of(task) or {})}


def further_of(task: GenerationTask) -> Mapping[str, Json] | None:
    """Return the further keys of a task's request."""
    written = task.entrant.chosen.extra_body
    return json.loads(written) if written else None


class _TokenCount(msgspec.Struct, frozen=True):
    input_tokens: Count


_TOKEN_COUNT: Final = msgspec.json.Decoder(_TokenCount)


def token_counter(client: Anthropic, judge: JudgeSettings) -> TokenCounter:
    """Return what counts the input of a judge's requests, cached or not."""
    messages = with_retries(client).messages.with_raw_response
    form = RequestForm(judge, cache="off")

    def n_tokens(query: JudgeQuery) -> int:
        body = messages.count_tokens(**form.counted(query)).read()
        return decode_json(body, _TOKEN_COUNT).input_tokens

    return lambda queries: told(lambda: {query.query_key: n_tokens(query) for query in queries})


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
