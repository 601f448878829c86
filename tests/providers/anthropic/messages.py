"""A Message for a request: the reply of the model, cut and spoilt as it must be, and its usage.

By default the model is a judge whose verdict follows from the question's digest.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from tests.providers.anthropic.exchange import Outcome
from tests.providers.anthropic.prompt import (
    THINKING_TOKENS,
    Block,
    Json,
    Model,
    blocks_of,
    head_of,
    n_tokens_of,
    schema_of,
    share_of,
    texts_of,
    value_of,
)

_VERDICTS: Final = ("A", "B", "TIE")
_BATCH_HIT_RATE: Final = 0.6  # of the cache; the API's documentation says 30 to 98 %


@dataclass(frozen=True)
class Asked:
    """A question to a model."""

    model: str
    system: str
    user: str
    schema: Json | None = None


class Reply(NamedTuple):
    """A model's reply; `refusal` and `max_tokens` are stop reasons, too."""

    text: str
    stop_reason: str = "end_turn"


Answering = Callable[[Asked], Reply]


def judge(asked: Asked) -> Reply:
    """Give some reasoning, and a verdict or score that the same question always gets."""
    said = f"{asked.model}\0{asked.system}\0{asked.user}".encode()
    number = int.from_bytes(hashlib.sha256(said).digest()[:4], "big")
    verdict = _VERDICTS[number % len(_VERDICTS)]
    reasoning = f"Both were read against the rubric ({number:08x}), point by point."
    if asked.schema is None and "\n\nScore the answer by the rubric" in asked.user:
        return Reply(f"{reasoning}\n\nSCORE: {number % 10}")
    if asked.schema is None:
        return Reply(f"{reasoning}\n\nVERDICT: {verdict}")
    value = value_of(asked.schema, text=reasoning, choice=verdict, number=number)
    return Reply(msgspec.json.encode(value).decode())


_TTLS: Final = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
_LOOK_BACK: Final = 20  # blocks before a breakpoint in which the API looks for a cached prefix


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
    ttl: str | None


class _Entry(NamedTuple):
    expires_at: datetime
    ttl: str


def n_input_tokens(params: Mapping[str, object]) -> int:
    """Count the tokens of a prompt, its schema included."""
    schema = schema_of(params)
    n_schema = 0 if schema is None else n_tokens_of(msgspec.json.encode(schema).decode())
    return n_schema + sum(n_tokens_of(block.text) for block in blocks_of(params))


class PromptCache:
    """The prefixes that were written, for as long as each lives."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}

    def read_and_write(
        self, params: Mapping[str, object], model: Model, *, now: datetime, may_hit: bool
    ) -> Usage:
        """Return the input of a request, and remember the prefixes that it asks to cache.

        Args:
            params: of a Messages request.
            model: below whose minimum a prefix is not cached.
            now: a prefix lives five minutes or an hour after it was last used.
            may_hit: False where a request of a batch ran before its prefix was there.
        """
        n_tokens = n_input_tokens(params)
        prefixes = tuple(_prefixes(params, model))
        found = self._longest(prefixes, now) if may_hit else -1
        n_read = prefixes[found].n_tokens if found >= 0 else 0
        written = {"5m": 0, "1h": 0}
        start = n_read
        for prefix in prefixes[found + 1 :]:
            if prefix.ttl is not None and prefix.n_tokens >= model.n_cacheable_tokens:
                self._entries[prefix.digest] = _Entry(now + _TTLS[prefix.ttl], prefix.ttl)
                written[prefix.ttl] += prefix.n_tokens - start
                start = prefix.n_tokens
        return Usage(n_tokens - start, 0, written["5m"], written["1h"], n_read)

    def _longest(self, prefixes: tuple[_Prefix, ...], now: datetime) -> int:
        """Return the place of the longest prefix that is there, which then lives on, or -1."""
        marked = [place for place, prefix in enumerate(prefixes) if prefix.ttl is not None]
        for mark in reversed(marked):
            for place in range(mark, max(-1, mark - _LOOK_BACK), -1):
                entry = self._entries.get(prefixes[place].digest)
                if entry is not None and entry.expires_at > now:
                    lives_until = now + _TTLS[entry.ttl]
                    self._entries[prefixes[place].digest] = entry._replace(expires_at=lives_until)
                    return place
        return -1


def _prefixes(params: Mapping[str, object], model: Model) -> Iterator[_Prefix]:
    """Yield each prefix of a prompt that has breakpoints, up to the last of them."""
    blocks = list(blocks_of(params))
    ttls = _ttls(blocks, params)
    n_prefixes = max((place + 1 for place, ttl in enumerate(ttls) if ttl is not None), default=0)
    if not n_prefixes:
        return
    digest = hashlib.sha256(_invalidating(params, model))
    n_tokens = n_input_tokens(params) - sum(n_tokens_of(block.text) for block in blocks)
    for block, ttl in zip(blocks[:n_prefixes], ttls, strict=False):
        digest.update(f"\0{block.role}\0{block.text}".encode())
        n_tokens += n_tokens_of(block.text)
        yield _Prefix(digest.digest(), n_tokens, ttl)


def _ttls(blocks: list[Block], params: Mapping[str, object]) -> list[str | None]:
    ttls = [None if block.mark is None else str(block.mark.get("ttl", "5m")) for block in blocks]
    match params.get("cache_control"):
        case {**mark}:
            ttls[-1] = str(mark.get("ttl", "5m"))
        case _:
            pass
    return ttls


def _invalidating(params: Mapping[str, object], model: Model) -> bytes:
    """Return what else a prefix depends on: the model, the schema, the effort, the thinking."""
    names = ("output_config", "thinking", "tool_choice")
    rest = {name: params.get(name) for name in names}
    return msgspec.json.encode({"model": model.model_id, **rest}, order="deterministic")


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
        params: Json,
        model: Model,
        *,
        message_id: str,
        now: datetime,
        spoiling: Outcome = "succeeded",
        in_batch: str | None = None,
    ) -> Answered:
        """Return the message that answers a request.

        Args:
            params: which were checked.
            model: that they name.
            message_id: of the message.
            now: what was cached is there for a while.
            spoiling: "refused", "truncated" or "unreadable", where the reply is to be so.
            in_batch: the custom_id of a request of a batch, where caching is best effort.
        """
        may_hit = in_batch is None or share_of("cache", in_batch) < _BATCH_HIT_RATE
        cached = self._cache.read_and_write(params, model, now=now, may_hit=may_hit)
        reply = _spoilt(self._answering(_asked(params)), spoiling)
        written = _written(reply, params, model, is_truncated=spoiling == "truncated")
        usage = cached + Usage(n_output=written.n_tokens, n_thinking=written.n_thinking)
        tier = "standard" if in_batch is None else "batch"
        message = _message(written, message_id, model, usage.as_json(tier))
        is_unreadable = spoiling == "unreadable" and written.stop_reason == "end_turn"
        well: Outcome = "unreadable" if is_unreadable else "succeeded"
        return Answered(message, _OUTCOMES.get(written.stop_reason, well), usage)


def _asked(params: Json) -> Asked:
    model, system = str(params["model"]), texts_of(params, "system")
    return Asked(model, system, texts_of(params, "user"), schema_of(params))


def _spoilt(reply: Reply, spoiling: Outcome) -> Reply:
    match spoiling:
        case "refused":
            return Reply("", "refusal")
        case "unreadable":
            return Reply(_UNREADABLE)
        case _:
            return reply


def _written(reply: Reply, params: Json, model: Model, *, is_truncated: bool) -> _Written:
    """Return what is written before max_tokens is reached; thinking comes first, and counts."""
    n_wanted, n_thought = n_tokens_of(reply.text), _n_thinking(params, model)
    n_allowed = int(str(params["max_tokens"]))
    if reply.stop_reason == "refusal":
        return _Written(reply.text, "refusal", n_wanted + 1, 0)
    if is_truncated or reply.stop_reason == "max_tokens":
        n_thought = max(0, n_allowed - n_wanted // 2)
    if n_thought + n_wanted <= n_allowed:
        return _Written(reply.text, reply.stop_reason, n_thought + n_wanted, n_thought)
    text = head_of(reply.text, max(0, n_allowed - n_thought))
    return _Written(text, "max_tokens", n_allowed, min(n_thought, n_allowed))


def _n_thinking(params: Json, model: Model) -> int:
    match params:
        case {"thinking": {"type": "enabled" | "adaptive"}}:
            pass
        case _ if not model.always_thinks:
            return 0
    match params:
        case {"output_config": {"effort": str(effort)}}:
            return THINKING_TOKENS[effort]
        case _:
            return THINKING_TOKENS[model.default_effort]


def _message(written: _Written, message_id: str, model: Model, usage: Json) -> Json:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model.model_id,
        "content": _content(written),
        "stop_reason": written.stop_reason,
        "stop_sequence": None,
        "stop_details": _stop_details(written),
        "usage": usage,
    }


def _content(written: _Written) -> list[Json]:
    signature = hashlib.sha256(msgspec.json.encode(written.text)).hexdigest()
    thinking: Json = {"type": "thinking", "thinking": "", "signature": signature}
    text: Json = {"type": "text", "text": written.text, "citations": None}
    return [thinking] * (written.n_thinking > 0) + [text] * bool(written.text)


def _stop_details(written: _Written) -> Json | None:
    if written.stop_reason != "refusal":
        return None
    return {"type": "refusal", "category": None, "explanation": None}
