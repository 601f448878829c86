"""A request's prompt, block by block, in the order in which it is cached and counted."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import msgspec

Json = dict[str, object]

_CHARS_PER_TOKEN = 4


class Block(NamedTuple):
    """A block of a prompt: a tool, a system block, or one of a message."""

    role: str
    content: object

    @property
    def mark(self) -> Json | None:
        """The block's cache_control."""
        fields = object_of(self.content)
        return None if fields is None else object_of(fields.get("cache_control"))

    @property
    def text(self) -> str:
        """What the block says: its text, or its JSON where it is no text."""
        match self.content:
            case str(text) | {"type": "text", "text": str(text)}:
                return text
            case _:
                fields = object_of(self.content) or {}
                bare = {name: value for name, value in fields.items() if name != "cache_control"}
                return msgspec.json.encode(bare, order="deterministic").decode()


def blocks_of(params: Mapping[str, object]) -> Iterator[Block]:
    """Yield the blocks of a prompt: tools, system, messages."""
    for role, content in _sections(params):
        match content:
            case [*several]:
                yield from (Block(role, each) for each in several)
            case None:
                pass
            case _:
                yield Block(role, content)


def _sections(params: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    yield "tools", params.get("tools")
    yield "system", params.get("system")
    match params.get("messages"):
        case [*messages]:
            for message in map(object_of, messages):
                yield ("", None) if message is None else (str(message["role"]), message["content"])
        case _:
            pass


def breakpoints(params: Mapping[str, object]) -> Iterator[object]:
    """Yield each cache_control: those of the blocks, then the one of the whole request."""
    yield from (block.mark for block in blocks_of(params) if block.mark is not None)
    if params.get("cache_control") is not None:
        yield params["cache_control"]


def texts_of(params: Mapping[str, object], role: str) -> str:
    """Return all that a prompt says in a role: `system`, `user`, `assistant`."""
    return "\n".join(block.text for block in blocks_of(params) if block.role == role)


def n_tokens_of(text: str) -> int:
    """Count the tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // _CHARS_PER_TOKEN)


def head_of(text: str, n_tokens: int) -> str:
    """Return the first tokens of a text."""
    return text[: n_tokens * _CHARS_PER_TOKEN]


def digest_of(params: Mapping[str, object]) -> str:
    """Return the digest that names a request in the bill: SHA-256 of its canonical JSON."""
    return hashlib.sha256(msgspec.json.encode(params, order="deterministic")).hexdigest()


def schema_of(params: Mapping[str, object]) -> Json | None:
    """Return the JSON schema that a request asks its reply to follow."""
    match params.get("output_config"):
        case {"format": {"type": "json_schema", "schema": schema}}:
            return object_of(schema)
        case _:
            return None


def object_of(value: object) -> Json | None:
    """Return a JSON value as an object, if it is one."""
    return cast("Json", value) if isinstance(value, dict) else None


def share_of(*names: str) -> float:
    """Return a number in [0, 1) that names always give: what happens to a share of requests."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
