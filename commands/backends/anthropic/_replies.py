"""Decode and check the replies of Anthropic's API, since the SDK does not validate them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from commands.backends.anthropic.client import ERROR_BODY, ApiError, is_out_of_credit
from commands.backends.remote.bodies import (
    count_in,
    decode_json,
    inflated,
    lines_in,
    text_of,
    time_of,
)
from commands.backends.remote.outcomes import undecodable
from commands.ports import (
    Answer,
    BatchState,
    GeneratedText,
    GenerationFailure,
    NoReply,
    Reply,
    Then,
)
from commands.settings.api_keys import redacted
from ledger.events.money import Usage
from ledger.events.values import Count
from ledger.identity import Digest


class _MessageType(msgspec.Struct, frozen=True):
    type: Literal["message"]


class _ContentBlock(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None
    thinking: str | None = None


class _CacheWrites(msgspec.Struct, frozen=True):
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count


class _TokenUsage(msgspec.Struct, frozen=True):
    input_tokens: Count
    output_tokens: Count
    cache_creation: _CacheWrites | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None


class _Message(msgspec.Struct, frozen=True):
    model: str
    content: tuple[_ContentBlock, ...]
    usage: _TokenUsage
    stop_reason: str | None = None

    @property
    def texts(self) -> Sequence[str]:
        """The text blocks; others, such as thinking, are left out."""
        return [block.text or "" for block in self.content if block.type == "text"]


_MESSAGE_TYPE: Final = msgspec.json.Decoder(_MessageType)
_MESSAGE: Final = msgspec.json.Decoder(_Message)


def answer_of(query_key: Digest, body: bytes) -> Answer:
    """Return the reply in a message, or a `NoReply` if it cannot be decoded."""
    if isinstance(message := _message_in(query_key, body), NoReply):
        return message
    return Reply(
        query_key=query_key,
        text="\n".join(message.texts),
        stop_reason=message.stop_reason or "",
        model=message.model,
        usage=_usage(message.usage),
    )


def generated_in(
    response_key: Digest, body: bytes, *, elapsed_s: float | None = None
) -> GeneratedText | GenerationFailure | NoReply:
    """Return the answer to a task in a message, with the thinking that it shows."""
    if isinstance(message := _message_in(response_key, body), NoReply):
        return message
    usage = _usage(message.usage)
    if message.stop_reason == "refusal":
        detail = "the model's safety filter withheld the answer, or part of it"
        return GenerationFailure(response_key, "refused", detail, usage)
    thoughts = [block.thinking for block in message.content if block.thinking]
    return GeneratedText(
        response_key=response_key,
        text="".join(message.texts),
        finish_reason=_FINISH_REASONS.get(message.stop_reason or "", message.stop_reason),
        n_prompt_tokens=usage.n_prompt,
        n_generated_tokens=usage.n_output,
        elapsed_s=elapsed_s,
        reasoning="\n".join(thoughts) or None,
    )


def _message_in(key: Digest, body: bytes) -> "_Message | NoReply":
    """Return a message; what is none raises msgspec.DecodeError."""
    decode_json(body, _MESSAGE_TYPE)
    try:
        return decode_json(body, _MESSAGE)
    except msgspec.ValidationError as error:
        return undecodable(key, error)


_FINISH_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
}


def _usage(used: _TokenUsage) -> Usage:
    """Return the token usage; cache writes without a lifetime count as five-minute ones."""
    written = used.cache_creation
    n_5m = used.cache_creation_input_tokens or 0
    return Usage(
        n_input=used.input_tokens,
        n_output=used.output_tokens,
        n_cache_write_5m=n_5m if written is None else written.ephemeral_5m_input_tokens,
        n_cache_write_1h=0 if written is None else written.ephemeral_1h_input_tokens,
        n_cache_read=used.cache_read_input_tokens or 0,
    )


_LIFE: Final = timedelta(hours=24)
_FINAL_ERRORS: Final = frozenset({"invalid_request_error", "request_too_large"})
_ERRORS_OF_ALL: Final = frozenset(
    {"authentication_error", "billing_error", "not_found_error", "permission_error"}
)


class _MessageBatch(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    processing_status: str
    created_at: object = None
    expires_at: object = None
    request_counts: object = None
    results_url: object = None


class _BatchPage(msgspec.Struct, frozen=True):
    data: tuple[_MessageBatch, ...]
    has_more: bool = False


class _Result(msgspec.Struct, frozen=True):
    type: Literal["succeeded", "errored", "expired", "canceled"]
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _ResultLine(msgspec.Struct, frozen=True):
    custom_id: str
    result: msgspec.Raw = msgspec.Raw(b"null")


_MESSAGE_BATCH: Final = msgspec.json.Decoder(_MessageBatch)
_BATCH_PAGE: Final = msgspec.json.Decoder(_BatchPage)
_RESULT_LINE: Final = msgspec.json.Decoder(_ResultLine)
_RESULT: Final = msgspec.json.Decoder(_Result)


def state_of(body: bytes) -> BatchState:
    """Return the state of a batch."""
    return _state(decode_json(body, _MESSAGE_BATCH))


def page_of(body: bytes) -> tuple[tuple[BatchState, ...], bool]:
    """Return the batches of a page, and whether there are more."""
    page = decode_json(body, _BATCH_PAGE)
    return tuple(map(_state, page.data)), page.has_more and bool(page.data)


_Read = TypeVar("_Read")
_Reader: TypeAlias = Callable[[Digest, bytes], _Read | NoReply]
"""Reads a message that answers the request of a key."""


def answers_in(chunks: Iterator[bytes], read: _Reader[_Read]) -> Iterator[_Read | NoReply]:
    """Yield the answers in a streamed results file; lines that are not results are skipped."""
    for line in lines_in(inflated(chunks)):
        try:
            answer = _result(line, read)
        except msgspec.DecodeError:  # most often the last line of an interrupted stream
            continue
        yield answer


def _result(line: bytes, read: _Reader[_Read]) -> _Read | NoReply:
    """Return the answer in a line; a result that cannot be decoded becomes a `NoReply`."""
    result_line = decode_json(line, _RESULT_LINE)
    key = Digest(result_line.custom_id)
    try:
        return _answer(key, _RESULT.decode(result_line.result), read)
    except msgspec.DecodeError as error:
        return undecodable(key, error)


def _answer(key: Digest, result: _Result, read: _Reader[_Read]) -> _Read | NoReply:
    match result.type:
        case "succeeded":
            return read(key, bytes(result.message))
        case "errored":
            return _errored(key, ERROR_BODY.decode(result.error).error)
        case "expired":
            return NoReply(key, "expired", "the batch expired before this request's turn")
        case "canceled":
            return NoReply(key, "canceled", "the batch was canceled before this request's turn")


def _errored(key: Digest, error: ApiError) -> NoReply:
    """Return why a request failed; an invalid request is rejected for good."""
    is_of_all = error.type in _ERRORS_OF_ALL or is_out_of_credit(error.message)
    is_final = error.type in _FINAL_ERRORS and not is_of_all
    detail = redacted(f"{error.type}: {error.message}")
    then: Then = "stop" if is_of_all else "go on"
    return NoReply(key, "rejected" if is_final else "errored", detail, then=then)


def _state(batch: _MessageBatch) -> BatchState:
    counts = batch.request_counts
    n_succeeded, n_errored = count_in(counts, "succeeded"), count_in(counts, "errored")
    n_canceled, n_expired = count_in(counts, "canceled"), count_in(counts, "expired")
    n_done = n_succeeded + n_errored + n_canceled + n_expired
    has_ended = batch.processing_status == "ended"
    created_at = time_of(batch.created_at) or datetime.now(UTC)  # it has no time: it may be new
    return BatchState(
        provider_batch_id=batch.id,
        created_at=created_at,
        expires_at=time_of(batch.expires_at) or created_at + _LIFE,
        has_ended=has_ended,
        n_queries=count_in(counts, "processing") + n_done,
        n_succeeded=n_succeeded,
        n_errored=n_errored,
        n_canceled=n_canceled,
        n_expired=n_expired,
        n_results=n_done or None,
        has_results=text_of(batch.results_url) is not None or not has_ended,
    )
