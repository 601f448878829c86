"""Decode and check completions, since OpenAI's client does not validate them."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Final

import msgspec

from commands.backends.remote.bodies import decode_json
from commands.ports import GeneratedText, GenerationFailure, NoReply, Reply
from ledger.events.money import Usage
from ledger.events.values import Count
from ledger.identity import Digest

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
