"""Decode and check completions, since OpenAI's client does not validate them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from commands.backends.remote.bodies import decode_json
from commands.backends.remote.outcomes import Unanswered
from commands.ports import GeneratedText, GenerationFailure, Reply
from commands.settings.api_keys import redacted
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


class _JudgeUsage(msgspec.Struct, frozen=True):
    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count = 0
    prompt_tokens_details: _PromptTokenDetails | None = None
    prompt_cache_hit_tokens: Count | None = None  # as DeepSeek says it

    @property
    def n_output(self) -> int:
        """The tokens billed as output; Google counts thinking in the total alone."""
        return max(self.completion_tokens, self.total_tokens - self.prompt_tokens)

    @property
    def n_cached(self) -> int:
        """The prompt's tokens that were read from the server's cache."""
        details = self.prompt_tokens_details
        n_reported = (details.cached_tokens if details else None) or self.prompt_cache_hit_tokens
        return min(n_reported or 0, self.prompt_tokens)

    @property
    def n_written(self) -> int:
        """The prompt's tokens that were written to the server's cache, for a surcharge."""
        details = self.prompt_tokens_details
        n_reported = (details.cache_write_tokens if details else None) or 0
        return min(n_reported, self.prompt_tokens - self.n_cached)


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
    def text(self) -> str:
        """What the model says to the user; its reasoning, wherever it stands, is left out."""
        if isinstance(self.content, tuple):
            return "".join(part.text or "" for part in self.content if part.type == "text")
        return self.content or ""

    @property
    def refused(self) -> str:
        """The refusal, in the model's words; empty if there is none."""
        parts = self.content if isinstance(self.content, tuple) else ()
        return self.refusal or "".join(part.refusal or "" for part in parts)


class _JudgeChoice(msgspec.Struct, frozen=True):
    message: _ChatMessage
    finish_reason: str | None = None


class _JudgeCompletion(msgspec.Struct, frozen=True):
    model: str
    choices: Annotated[tuple[_JudgeChoice, ...], msgspec.Meta(min_length=1)]
    usage: _JudgeUsage | None = None


_JUDGE_COMPLETION: Final = msgspec.json.Decoder(_JudgeCompletion)


def reply_of(query_key: Digest, body: bytes) -> Reply:
    """Return the reply to a judge query, from a chat completion."""
    completion = decode_json(body, _JUDGE_COMPLETION)
    choice = completion.choices[0]
    message, finish_reason = choice.message, choice.finish_reason or ""
    stop_reason = _STOP_REASONS.get(finish_reason, finish_reason)
    return Reply(
        query_key=query_key,
        text=message.text or message.refused,
        stop_reason="refusal" if message.refused else stop_reason,
        model=completion.model,
        usage=None if completion.usage is None else _usage(completion.usage),
    )


def _usage(usage: _JudgeUsage) -> Usage:
    """Return the token usage; tokens that a cache read or wrote do not count as input again."""
    return Usage(
        n_input=usage.prompt_tokens - usage.n_cached - usage.n_written,
        n_output=usage.n_output,
        n_cache_write_5m=usage.n_written,
        n_cache_read=usage.n_cached,
    )


class _TextUsage(msgspec.Struct, frozen=True):
    prompt_tokens: Count
    completion_tokens: Count


class _TextChoice(msgspec.Struct, frozen=True):
    finish_reason: str
    message: _ChatMessage | None = None  # of a chat
    text: str | None = None  # of a plain completion

    @property
    def generated(self) -> str:
        """The generated text, of a chat or a plain completion."""
        if self.message is None:
            return self.text or ""
        return self.message.text or self.message.refused


class _TextCompletion(msgspec.Struct, frozen=True):
    choices: Annotated[tuple[_TextChoice, ...], msgspec.Meta(min_length=1)]
    usage: _TextUsage  # the only source of a response's length


_TEXT_COMPLETION: Final = msgspec.json.Decoder(_TextCompletion)


def text_of(
    response_key: Digest, body: bytes, *, elapsed_s: float, stop: Sequence[str] = ()
) -> GeneratedText | GenerationFailure | Unanswered:
    """Return the answer to a task that ends at a text of `stop`, from a completion of any kind."""
    completion = decode_json(body, _TEXT_COMPLETION)
    choice, usage = completion.choices[0], completion.usage
    match choice.finish_reason:
        case "stop" | "length" | "eos_token" | "stop_sequence" as finish_reason:  # the last: TGI
            text = choice.generated
            return GeneratedText(
                response_key=response_key,
                text=_before(stop, text) if finish_reason == "stop_sequence" else text,
                finish_reason="length" if finish_reason == "length" else "stop",
                n_prompt_tokens=usage.prompt_tokens,
                n_generated_tokens=usage.completion_tokens,
                elapsed_s=elapsed_s,
                reasoning=choice.message.thought if choice.message else None,
            )
        case "content_filter":
            detail = "the server's content filter withheld the answer, or part of it"
            used = Usage(n_input=usage.prompt_tokens, n_output=usage.completion_tokens)
            return GenerationFailure(response_key, "refused", detail, used)
        case other:
            return Unanswered(redacted(f"unknown finish reason {other!r}"), "perhaps billed")


def _before(stop: Sequence[str], text: str) -> str:
    """Return a text without the one of `stop` that ended it, which TGI leaves in."""
    return next((text.removesuffix(each) for each in stop if text.endswith(each)), text)
