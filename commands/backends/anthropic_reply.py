"""Read a message of Anthropic's API, checked: its SDK hands on whatever a server sends."""

from typing import Literal

import msgspec

from commands.backends.json_body import decoded
from commands.ports import Answer, NoReply, Reply
from ledger.events.values import Count, Usage
from ledger.identity import Digest
from projections.tournament.spend import MAY_BE_BILLED


class _Named(msgspec.Struct, frozen=True):
    type: Literal["message"]


class _Block(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None


class _Lives(msgspec.Struct, frozen=True):
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count


class _Used(msgspec.Struct, frozen=True):
    input_tokens: Count
    output_tokens: Count
    cache_creation: _Lives | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None


class _Message(msgspec.Struct, frozen=True):
    model: str
    content: tuple[_Block, ...]
    usage: _Used
    stop_reason: str | None = None


def answer_of(query_key: Digest, body: bytes) -> Answer:
    """Return what a message says, or that it cannot be read.

    Raises:
        msgspec.DecodeError: It is no message.
    """
    decoded(body, _Named)
    try:
        return _reply(query_key, decoded(body, _Message))
    except msgspec.ValidationError as error:
        return unreadable(query_key, error)


def unreadable(query_key: Digest, why: msgspec.DecodeError) -> NoReply:
    """Return that a query was answered to no use; asked again, it may fare better."""
    detail = f"the answer cannot be read ({why}); {MAY_BE_BILLED}"
    return NoReply(query_key, "errored", detail)


def _reply(query_key: Digest, message: _Message) -> Reply:
    """Return what a message says; blocks that are no text, as thinking, are left out."""
    texts = [block.text or "" for block in message.content if block.type == "text"]
    return Reply(
        query_key=query_key,
        text="\n".join(texts),
        stop_reason=message.stop_reason or "",
        model=message.model,
        usage=_usage(message.usage),
    )


def _usage(used: _Used) -> Usage:
    """Return the tokens; cache writes that are not told by life are those of five minutes."""
    written = used.cache_creation
    n_5m = used.cache_creation_input_tokens or 0
    return Usage(
        n_input=used.input_tokens,
        n_output=used.output_tokens,
        n_cache_write_5m=n_5m if written is None else written.ephemeral_5m_input_tokens,
        n_cache_write_1h=0 if written is None else written.ephemeral_1h_input_tokens,
        n_cache_read=used.cache_read_input_tokens or 0,
    )
