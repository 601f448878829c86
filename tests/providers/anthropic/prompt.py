"""A request's prompt in the order in which it is cached, and the models and schemas it is for.

Minimum prefixes are those of the documentation of autumn 2026; where it has none, a guess.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import msgspec

from tests.providers.anthropic.errors import invalid, not_found

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


_LOWEST_EFFORT_TOKENS: Final = 40
THINKING_TOKENS: Final[Mapping[str, int]] = {
    effort: _LOWEST_EFFORT_TOKENS << step
    for step, effort in enumerate(("low", "medium", "high", "xhigh", "max"))
}


@dataclass(frozen=True)
class Model:
    """What a model allows, and whether it always thinks before it writes."""

    model_id: str
    n_cacheable_tokens: int = 1_024
    n_output_tokens: int = 64_000
    default_effort: str = "high"
    always_thinks: bool = False


def _newest(model_id: str, **differing: object) -> Model:
    """Return a model that caches from 512 tokens on."""
    given: dict[str, object] = {"n_cacheable_tokens": 512, "n_output_tokens": 128_000, **differing}
    return Model(model_id, **given)  # type: ignore[arg-type]  # as named


MODELS: Final[Mapping[str, Model]] = {
    model.model_id: model
    for model in (
        _newest("claude-fable-5-2", always_thinks=True),
        _newest("claude-fable-5-1", always_thinks=True),
        _newest("claude-fable-5", always_thinks=True),
        _newest("claude-opus-5-5", always_thinks=True, default_effort="medium"),
        _newest("claude-sonnet-5-5"),
        Model("claude-haiku-5-5", n_cacheable_tokens=4_096, default_effort="medium"),
        Model("claude-opus-5", n_cacheable_tokens=512, n_output_tokens=128_000),
        Model("claude-sonnet-5"),
        Model("claude-opus-4-8"),
        Model("claude-opus-4-7", n_cacheable_tokens=2_048),
        Model("claude-opus-4-6", n_cacheable_tokens=4_096),
        Model("claude-opus-4-5", n_cacheable_tokens=4_096),
        Model("claude-sonnet-4-6"),
        Model("claude-sonnet-4-5"),
        Model("claude-haiku-4-5", n_cacheable_tokens=4_096),
    )
}


def model_named(model_id: str) -> Model:
    """Return a model.

    Raises:
        ApiError: there is none of that name (404).
    """
    if model_id not in MODELS:
        raise not_found(f"model: {model_id}")
    return MODELS[model_id]


def model_info(model: Model) -> dict[str, object]:
    """Return what GET /v1/models/{id} says of a model."""
    return {
        "type": "model",
        "id": model.model_id,
        "display_name": model.model_id.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "line": model.model_id.split("-")[1],
        "max_input_tokens": 1_000_000,
        "max_tokens": model.n_output_tokens,
    }


_REFUSED_KEYWORDS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "maxItems", "uniqueItems"}
)


def check_schema(schema: object, where: str = "output_config.format.schema") -> None:
    """Check a schema for what structured outputs do not take.

    Raises:
        ApiError: an object that allows more properties, or a limit of size or value (400).
    """
    fields = object_of(schema)
    if fields is None:
        return
    if fields.get("type") == "object" and fields.get("additionalProperties") is not False:
        raise invalid(f"{where}: 'additionalProperties' must be set to false")
    for keyword in sorted(_REFUSED_KEYWORDS & fields.keys()):
        raise invalid(f"{where}: property '{keyword}' is not supported")
    for name, below in _subschemas(fields):
        check_schema(below, f"{where}.{name}")


def _subschemas(fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for keyword in ("properties", "$defs"):
        yield from (object_of(fields.get(keyword)) or {}).items()
    yield "items", fields.get("items")
    match fields.get("anyOf"):
        case [*choices]:
            yield from ((f"anyOf.{place}", choice) for place, choice in enumerate(choices))
        case _:
            pass


def value_of(schema: object, *, text: str, choice: str, number: int) -> object:
    """Return a value that a schema allows: texts are `text`, choices `choice` where it may be."""

    def within(below: object) -> object:
        return value_of(below, text=text, choice=choice, number=number)

    match schema:
        case {"enum": [*allowed]}:
            return choice if choice in allowed else allowed[number % len(allowed)]
        case {"const": value}:
            return value
        case {"anyOf": [first, *_]}:
            return within(first)
        case {"type": "object", "properties": properties}:
            return {name: within(below) for name, below in (object_of(properties) or {}).items()}
        case {"type": "array", "items": below}:
            return [within(below)]
        case {"type": str(kind)}:
            digit = number % 10
            values = {"boolean": digit % 2 == 0, "integer": digit, "number": digit, "null": None}
            return values.get(kind, text)
        case _:
            return text
