"""Judge queries and entrants' tasks as requests to the Messages API, and counting their tokens.

Sampling settings are never sent: the API rejects them since its version of 2026-10-21.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast, get_args

import msgspec
from anthropic import Anthropic, types
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from commands.backends.anthropic.client import told, with_retries
from commands.backends.remote.bodies import decode_json
from commands.entrants.chats import prompt_messages
from commands.ports import GenerationTask
from commands.settings.schema import CacheTtl, Effort
from ledger.events.registration import JudgeSettings
from ledger.events.values import Count
from ledger.identity import Digest, Json
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


class AnthropicTokens:
    """Counts the input of a judge's requests, cached or not."""

    def __init__(self, client: Anthropic, judge: JudgeSettings) -> None:
        self._messages = with_retries(client).messages.with_raw_response
        self._form = RequestForm(judge, cache="off")

    def count(self, queries: Sequence[JudgeQuery]) -> Mapping[Digest, int]:
        """Return the input tokens of queries, by query key."""
        return told(lambda: {query.query_key: self._n_tokens(query) for query in queries})

    def _n_tokens(self, query: JudgeQuery) -> int:
        body = self._messages.count_tokens(**self._form.counted(query)).read()
        return decode_json(body, _TOKEN_COUNT).input_tokens
