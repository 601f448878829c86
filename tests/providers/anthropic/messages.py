"""A Message for a request: the reply of the model, cut and spoilt as it must be, and its usage.

By default the model is a judge whose verdict follows from the question's digest.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from tests.providers.anthropic.exchange import Outcome
from tests.providers.anthropic.prompt import (
    THINKING_TOKENS,
    Counted,
    Json,
    Model,
    Params,
    head_of,
    model_named,
    n_tokens_of,
    properties_of,
    share_of,
)

_VERDICTS: Final = ("A", "B", "TIE")
_BATCH_HIT_RATE: Final = 0.6  # of the cache; the API's documentation says 30 to 98 %


class Reply(NamedTuple):
    """A model's reply; `refusal` and `max_tokens` are stop reasons, too."""

    text: str
    stop_reason: str = "end_turn"


Answering = Callable[[Params], Reply]


def judge(asked: Params) -> Reply:
    """Give some reasoning, and a verdict or score that the same question always gets."""
    said = f"{asked.model}\0{asked.system_text}\0{asked.user}".encode()
    number = int.from_bytes(hashlib.sha256(said).digest()[:4], "big")
    verdict = _VERDICTS[number % len(_VERDICTS)]
    reasoning = f"Both were read against the rubric ({number:08x}), point by point."
    if asked.schema is not None:
        return Reply(_by_schema(asked.schema, reasoning, verdict, number))
    if "\n\nScore the answer by the rubric" in asked.user:
        return Reply(f"{reasoning}\n\nSCORE: {number % 10}")
    return Reply(f"{reasoning}\n\nVERDICT: {verdict}")


def _by_schema(schema: Json, text: str, verdict: str, number: int) -> str:
    """Return an object that a schema allows."""

    def value(kind: Json) -> object:
        match kind:
            case {"enum": [*allowed]}:
                return verdict if verdict in allowed else allowed[number % len(allowed)]
            case {"type": "number"}:
                return number % 10
            case {"properties": {**parts}}:
                return {
                    name: value(part) for name, part in properties_of({"properties": parts}).items()
                }
            case _:
                return text

    values = {name: value(kind) for name, kind in properties_of(schema).items()}
    return msgspec.json.encode(values).decode()


_TTLS: Final = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens, each counted in one field only, except that thinking is part of the output."""

    n_input: int = 0
    n_output: int = 0
    n_written_5m: int = 0
    n_written_1h: int = 0
    n_read: int = 0
    n_thinking: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the tokens of both."""
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Usage(*(a + b for a, b in zip(mine, theirs, strict=True)))

    def as_json(self, service_tier: str) -> Json:
        """Return the usage as the API writes it."""
        return {
            "input_tokens": self.n_input,
            "cache_creation_input_tokens": self.n_written_5m + self.n_written_1h,
            "cache_read_input_tokens": self.n_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.n_written_5m,
                "ephemeral_1h_input_tokens": self.n_written_1h,
            },
            "output_tokens": self.n_output,
            "output_tokens_details": {"thinking_tokens": self.n_thinking},
            "server_tool_use": None,
            "service_tier": service_tier,
        }


class _Prefix(NamedTuple):
    digest: bytes
    n_tokens: int
    ttl: str


class _Entry(NamedTuple):
    expires_at: datetime
    ttl: str


def n_input_tokens(params: Counted) -> int:
    """Count the tokens of a prompt, its schema included."""
    return _n_schema_tokens(params) + sum(n_tokens_of(block.text) for block in params.blocks)


def _n_schema_tokens(params: Counted) -> int:
    schema = params.schema
    return 0 if schema is None else n_tokens_of(msgspec.json.encode(schema).decode())


class PromptCache:
    """The prefixes that were written, for as long as each lives."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}

    def read_and_write(self, params: Counted, *, now: datetime, may_hit: bool) -> Usage:
        """Return the input of a request, and remember the prefixes that it asks to cache.

        Args:
            params: of a request, below whose model's minimum a prefix is not cached.
            now: a prefix lives five minutes or an hour after it was last used.
            may_hit: False where a request of a batch ran before its prefix was there.
        """
        n_tokens, prefixes = n_input_tokens(params), [*_prefixes(params)]
        places = range(len(prefixes)) if may_hit else ()
        known = [place for place in places if self._lives_on(prefixes[place], now)]
        n_read = start = prefixes[known[-1]].n_tokens if known else 0
        written = {"5m": 0, "1h": 0}
        for prefix in prefixes[known[-1] + 1 if known else 0 :]:
            if prefix.n_tokens >= model_named(params.model).n_cacheable_tokens:
                self._entries[prefix.digest] = _Entry(now + _TTLS[prefix.ttl], prefix.ttl)
                written[prefix.ttl] += prefix.n_tokens - start
                start = prefix.n_tokens
        return Usage(n_tokens - start, 0, written["5m"], written["1h"], n_read)

    def _lives_on(self, prefix: _Prefix, now: datetime) -> bool:
        """Return whether a prefix is there, which then lives on."""
        entry = self._entries.get(prefix.digest)
        if entry is None or entry.expires_at <= now:
            return False
        self._entries[prefix.digest] = entry._replace(expires_at=now + _TTLS[entry.ttl])
        return True


def _prefixes(params: Counted) -> Iterator[_Prefix]:
    """Yield each prefix of a prompt that is to be cached; its model and its form are part of it."""
    form = msgspec.json.encode([params.model, params.output_config], order="deterministic")
    digest, n_tokens = hashlib.sha256(form), _n_schema_tokens(params)
    for block in params.blocks:
        digest.update(f"\0{block.named}".encode())
        n_tokens += n_tokens_of(block.text)
        if block.ttl is not None:
            yield _Prefix(digest.digest(), n_tokens, block.ttl)


_UNREADABLE: Final = "Both have their merits, and I would rather not say more."
_OUTCOMES: Final[dict[str, Outcome]] = {"refusal": "refused", "max_tokens": "truncated"}


class Answered(NamedTuple):
    """A message, what became of the request, and what it used."""

    message: Json
    outcome: Outcome
    usage: Usage


class _Written(NamedTuple):
    text: str
    stop_reason: str
    n_tokens: int
    n_thinking: int


class Assistant:
    """Answers requests, and knows what was cached."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._cache = PromptCache()

    def answer(
        self,
        params: Params,
        *,
        message_id: str,
        now: datetime,
        spoiling: Outcome = "succeeded",
        in_batch: str | None = None,
    ) -> Answered:
        """Return the message that answers a request.

        Args:
            params: of the request.
            message_id: of the message.
            now: what was cached is there for a while.
            spoiling: "refused", "truncated" or "unreadable", where the reply is to be so.
            in_batch: the custom_id of a request of a batch, where caching is best effort.
        """
        may_hit = in_batch is None or share_of("cache", in_batch) < _BATCH_HIT_RATE
        cached = self._cache.read_and_write(params, now=now, may_hit=may_hit)
        reply = _spoilt(self._answering(params), spoiling)
        written = _written(reply, params, is_truncated=spoiling == "truncated")
        usage = cached + Usage(n_output=written.n_tokens, n_thinking=written.n_thinking)
        tier = "standard" if in_batch is None else "batch"
        message = _message(written, message_id, params.model, usage.as_json(tier))
        is_unreadable = spoiling == "unreadable" and written.stop_reason == "end_turn"
        well: Outcome = "unreadable" if is_unreadable else "succeeded"
        return Answered(message, _OUTCOMES.get(written.stop_reason, well), usage)


def _spoilt(reply: Reply, spoiling: Outcome) -> Reply:
    match spoiling:
        case "refused":
            return Reply("", "refusal")
        case "unreadable":
            return Reply(_UNREADABLE)
        case _:
            return reply


def _written(reply: Reply, params: Params, *, is_truncated: bool) -> _Written:
    """Return what is written before max_tokens is reached; thinking comes first, and counts."""
    n_wanted, n_allowed = n_tokens_of(reply.text), params.max_tokens
    n_thought = _n_thinking(params, model_named(params.model))
    if reply.stop_reason == "refusal":
        return _Written(reply.text, "refusal", n_wanted + 1, 0)
    if is_truncated or reply.stop_reason == "max_tokens":
        n_thought = max(0, n_allowed - n_wanted // 2)
    if n_thought + n_wanted <= n_allowed:
        return _Written(reply.text, reply.stop_reason, n_thought + n_wanted, n_thought)
    text = head_of(reply.text, max(0, n_allowed - n_thought))
    return _Written(text, "max_tokens", n_allowed, min(n_thought, n_allowed))


def _n_thinking(params: Params, model: Model) -> int:
    if not model.always_thinks:
        return 0
    return THINKING_TOKENS[params.output_config.effort or model.default_effort]


def _message(written: _Written, message_id: str, model: str, usage: Json) -> Json:
    signature = hashlib.sha256(msgspec.json.encode(written.text)).hexdigest()
    thinking: Json = {"type": "thinking", "thinking": "", "signature": signature}
    text: Json = {"type": "text", "text": written.text, "citations": None}
    refusal = {"type": "refusal", "category": None, "explanation": None}
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [thinking] * (written.n_thinking > 0) + [text] * bool(written.text),
        "stop_reason": written.stop_reason,
        "stop_sequence": None,
        "stop_details": refusal if written.stop_reason == "refusal" else None,
        "usage": usage,
    }
