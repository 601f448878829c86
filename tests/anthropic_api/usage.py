"""What a request used: its tokens, and which of them were cached."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from tests.anthropic_api.models import Model
from tests.anthropic_api.prompt import Block, Json, blocks_of, n_tokens_of, schema_of

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
