"""A judge and an entrant on a server with OpenAI's API, such as vLLM or SGLang.

The server renders the chat, counts the tokens and ends the answer. A prompt that it refuses, for
instance as too long, has no answer; no prompt is truncated. OpenAI's client does not validate
completions, so they are checked here.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from time import perf_counter
from typing import Annotated, Final

import msgspec

from commands.backends.endpoint.about import facts_of
from commands.backends.endpoint.refused_parameters import remedy_of
from commands.backends.endpoint.requests import PATH, PLAIN_PATH, ChatForm, body_of
from commands.backends.endpoint.server import Asker, Endpoint
from commands.backends.remote.bodies import decode_json
from commands.ports import Answer, GeneratedText, GenerationFailure, GenerationTask, NoReply, Reply
from ledger.events.money import Usage
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.requests import ParameterRefused, ServerFacts
from ledger.events.values import Count
from ledger.identity import Digest
from projections.tournament.estimate import FRAME_TOKENS, n_bytes
from projections.verdicts.queries import JudgeQuery


class EndpointJudge:
    """Sends one request per query."""

    def __init__(
        self, judge: JudgeSettings, server: Endpoint, *, refused: Sequence[ParameterRefused] = ()
    ) -> None:
        """Take the judge, its server, and what servers were found not to take."""
        self.host = server.host
        self._form = ChatForm(judge)
        self._asker = Asker(server, judge.model, refused, remedy_of=remedy_of)

    def ask(self, query: JudgeQuery) -> Answer:
        """Send a query once, or without a parameter that the server does not take."""
        key = query.query_key
        return self._asker.ask(key, PATH, self._form.body(query), partial(reply_of, key))


class EndpointResponder:
    """Sends one request per task."""

    def __init__(
        self, entrant: Entrant, server: Endpoint, refused: Sequence[ParameterRefused]
    ) -> None:
        """Take the entrant, its server, and what servers do not take."""
        self._model, self._server = entrant.weights, server
        self.url, self.host = server.base_url, server.host
        self._asker = Asker(server, entrant.weights, refused)

    def facts(self) -> ServerFacts | None:
        """Return what the server says of itself."""
        return facts_of(self._model, self._server, self._asker.client)

    def n_input_at_most(self, task: GenerationTask) -> int:
        """Return an upper bound on a request's tokens: a token has at least one byte."""
        return n_bytes(json.dumps(body_of(task), ensure_ascii=False)) + FRAME_TOKENS

    def ask(self, task: GenerationTask) -> GeneratedText | GenerationFailure | NoReply:
        """Send a task once, or without a parameter that the server does not take."""
        key, options, began_at = task.response_key, task.options, perf_counter()

        def read(body: bytes) -> GeneratedText | GenerationFailure | NoReply:
            return text_of(key, body, elapsed_s=perf_counter() - began_at, stop=options.stop)

        return self._asker.ask(key, PATH if options.is_chat else PLAIN_PATH, body_of(task), read)


_STOP_REASONS: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "model_length": "max_tokens",  # Mistral: the model's context is full
    "content_filter": "refusal",
}


class _PromptTokenDetails(msgspec.Struct, frozen=True):
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None


_Told = Annotated[float, msgspec.Meta(ge=0)]  # some servers write 20.0


class _CompletionUsage(msgspec.Struct, frozen=True):
    prompt_tokens: _Told
    completion_tokens: _Told
    total_tokens: _Told | None = None
    prompt_tokens_details: _PromptTokenDetails | None = None
    prompt_cache_hit_tokens: Count | None = None  # as DeepSeek says it


_USAGE: Final[msgspec.json.Decoder[_CompletionUsage | None]] = msgspec.json.Decoder(
    _CompletionUsage | None
)


def _usage(told: msgspec.Raw) -> Usage | None:
    """Return the token usage; None: the server does not say it, or not all of it.

    Tokens that a cache read or wrote do not count as input again.
    """
    try:
        usage = _USAGE.decode(told)
    except msgspec.DecodeError:
        return None
    if usage is None:
        return None
    details = usage.prompt_tokens_details or _PromptTokenDetails()
    n_prompt = ceil(usage.prompt_tokens)
    n_read = min(details.cached_tokens or usage.prompt_cache_hit_tokens or 0, n_prompt)
    n_written = min(details.cache_write_tokens or 0, n_prompt - n_read)
    n_others = (usage.total_tokens or 0.0) - usage.prompt_tokens  # Google's thinking is here alone
    return Usage(
        n_input=n_prompt - n_read - n_written,
        n_output=ceil(max(usage.completion_tokens, n_others)),
        n_cache_write_5m=n_written,
        n_cache_read=n_read,
    )


class _Part(msgspec.Struct, frozen=True):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class _ChatMessage(msgspec.Struct, frozen=True):
    content: str | tuple[_Part, ...] | None = None  # in parts, as Mistral's thinking models
    refusal: str | None = None
    reasoning_content: str | None = None  # as vLLM, SGLang and DeepSeek say it
    reasoning: str | None = None  # as OpenRouter and newer servers do

    @property
    def thought(self) -> str | None:
        """The reasoning that stands beside the answer; None if there is none."""
        return self.reasoning_content or self.reasoning or None

    @property
    def said(self) -> str:
        """What it says, or why it says nothing; reasoning, wherever it stands, is left out."""
        parts = self.content if isinstance(self.content, tuple) else (_Part(text=self.content),)
        said = "".join(part.text or "" for part in parts if part.type == "text")
        return said or self.refused

    @property
    def refused(self) -> str:
        """The refusal, in the model's words; empty if there is none."""
        parts = self.content if isinstance(self.content, tuple) else ()
        return self.refusal or "".join(part.refusal or "" for part in parts)


class _Choice(msgspec.Struct, frozen=True):
    finish_reason: str | None = None
    message: _ChatMessage | None = None  # of a chat
    text: str | msgspec.UnsetType | None = msgspec.UNSET  # of a plain completion
    error: object = None  # in place of the rest of an answer


class _Completion(msgspec.Struct, frozen=True):
    choices: Annotated[tuple[_Choice, ...], msgspec.Meta(min_length=1)]
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def message(self) -> _ChatMessage:
        """The only answer that was asked for, of a chat or a plain completion.

        Raises:
            msgspec.ValidationError: It is an error, or holds no text of either kind.
        """
        choice = self.choices[0]
        if choice.error is not None:
            raise msgspec.ValidationError("the choice is an error")
        if choice.message is None and choice.text is msgspec.UNSET:
            raise msgspec.ValidationError("Object missing required field `message`")
        return choice.message or _ChatMessage(choice.text or None)


_COMPLETION: Final = msgspec.json.Decoder(_Completion)


def reply_of(query_key: Digest, body: bytes) -> Reply:
    """Return the reply to a judge query, from a chat completion."""
    completion = decode_json(body, _COMPLETION)
    message, finish_reason = completion.message, completion.choices[0].finish_reason or ""
    return Reply(
        query_key=query_key,
        text=message.said,
        stop_reason="refusal"
        if message.refused
        else _STOP_REASONS.get(finish_reason, finish_reason),
        model=completion.model or "",
        usage=_usage(completion.usage),
    )


def text_of(
    response_key: Digest, body: bytes, *, elapsed_s: float, stop: Sequence[str] = ()
) -> GeneratedText | GenerationFailure | NoReply:
    """Return the answer to a task that ends at a text of `stop`, from a completion of any kind.

    Why it ended is kept as the server says it; one that was aborted is no answer.
    """
    completion = decode_json(body, _COMPLETION)
    message, usage = completion.message, _usage(completion.usage)
    match completion.choices[0].finish_reason:
        case "content_filter":
            detail = "the server's content filter withheld the answer, or part of it"
            return GenerationFailure(response_key, "refused", detail, usage)
        case "abort" | "error" as reason:  # as vLLM and SGLang say it
            detail = f"the server ended the answer: finish reason {reason!r}"
            return NoReply(response_key, "errored", detail, "perhaps billed")
        case finish_reason:
            text = message.said  # TGI leaves in it what ended it
            return GeneratedText(
                response_key=response_key,
                text=_before(stop, text) if finish_reason == "stop_sequence" else text,
                finish_reason=finish_reason,
                n_prompt_tokens=None if usage is None else usage.n_prompt,
                n_generated_tokens=None if usage is None else usage.n_output,
                elapsed_s=elapsed_s,
                reasoning=message.thought,
            )


def _before(stop: Sequence[str], text: str) -> str:
    """Return a text without the one of `stop` that ended it."""
    return next((text.removesuffix(each) for each in stop if text.endswith(each)), text)
