"""Read a chat completion, checked: OpenAI's client hands on whatever a server sends."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from commands.backends.json_body import decoded
from commands.ports import Reply
from ledger.events.values import Count, Usage
from ledger.identity import Digest

_STOP_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
)


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: Count | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: _Details | None = None


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str


class _Completion(msgspec.Struct, frozen=True):
    model: str
    choices: Annotated[tuple[_Choice, ...], msgspec.Meta(min_length=1)]
    usage: _Usage | None = None


def reply_of(query_key: Digest, body: bytes) -> Reply:
    """Return what a server answered to a query.

    Raises:
        msgspec.DecodeError: It is no chat completion.
    """
    completion = decoded(body, _Completion)
    choice = completion.choices[0]
    refusal = choice.message.refusal
    stop_reason = _STOP_REASONS.get(choice.finish_reason, choice.finish_reason)
    return Reply(
        query_key=query_key,
        text=choice.message.content or refusal or "",
        stop_reason="refusal" if refusal else stop_reason,
        model=completion.model,
        usage=None if completion.usage is None else _counted(completion.usage),
    )


def _counted(usage: _Usage) -> Usage:
    """Return the tokens; those from the server's cache are not input again."""
    details = usage.prompt_tokens_details
    n_told = (details.cached_tokens if details else None) or 0
    n_cached = min(n_told, usage.prompt_tokens)
    return Usage(
        n_input=usage.prompt_tokens - n_cached,
        n_output=usage.completion_tokens,
        n_cache_read=n_cached,
    )
