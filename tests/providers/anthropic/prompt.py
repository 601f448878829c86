"""What a request may hold, how it is refused, its prompt in the order of caching, and the models.

What the API refuses of a batch errs hours later, so the fake takes what tourney sends, and nothing
else. Minimum prefixes are those of the documentation of autumn 2026.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

import msgspec

Json = dict[str, object]
STATUS_OF: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class ApiError(Exception):
    """An answer that is an error, as the API shapes it."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        error_code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.error_code = error_code
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """The HTTP status of an error of this kind."""
        return STATUS_OF[self.kind]

    def as_json(self, request_id: str | None = None) -> dict[str, object]:
        """Return the body, which is also what a batch's errored result holds."""
        error: dict[str, object] = {"type": self.kind, "message": self.message}
        if self.error_code is not None:
            error["details"] = {"error_code": self.error_code}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid(message: str) -> ApiError:
    """Return the error of a request that must be changed before it is sent again."""
    return ApiError("invalid_request_error", message)


def not_found(message: str) -> ApiError:
    """Return the error of something that is not there, or no longer."""
    return ApiError("not_found_error", message)


_CHARS_PER_TOKEN: Final = 4


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a request: a field that it does not know is refused."""


class Mark(_Part, tag_field="type", tag="ephemeral", frozen=True):
    """Up to here a prompt is cached."""

    ttl: Literal["5m", "1h"] = "5m"


class TextBlock(_Part, tag_field="type", tag="text", frozen=True):
    """A piece of what the system says."""

    text: Annotated[str, msgspec.Meta(min_length=1)]
    cache_control: Mark | None = None


class Turn(_Part, frozen=True):
    """What the user says, or the model said before."""

    role: Literal["user", "assistant"]
    content: str


class Format(_Part, tag_field="type", tag="json_schema", frozen=True):
    """The shape that a reply must have."""

    schema: Json


class OutputConfig(_Part, frozen=True):
    """How much is thought, and the shape of the reply."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: Format | None = None


class Counted(_Part, frozen=True):
    """What count_tokens takes."""

    model: str
    messages: Annotated[tuple[Turn, ...], msgspec.Meta(min_length=1)]
    system: tuple[TextBlock, ...] = ()
    output_config: OutputConfig = OutputConfig()

    @property
    def schema(self) -> Json | None:
        """The JSON schema that the reply is to follow."""
        form = self.output_config.format
        return None if form is None else form.schema

    @property
    def system_text(self) -> str:
        """All that the system says."""
        return "\n".join(block.text for block in self.system)

    @property
    def user(self) -> str:
        """What the user says last."""
        return self.messages[-1].content

    @property
    def blocks(self) -> Iterator["Block"]:
        """The blocks of the prompt in the order in which they are cached."""
        for block in self.system:
            mark = block.cache_control
            yield Block(f"system\0{block.text}", block.text, None if mark is None else mark.ttl)
        for turn in self.messages:
            yield Block(f"{turn.role}\0{turn.content}", turn.content)


class Params(Counted, frozen=True, kw_only=True):
    """What a message is asked for with."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    stop_sequences: tuple[str, ...] = ()


class Block(NamedTuple):
    """A block of a prompt."""

    named: str  # what tells its prefix from others
    text: str
    ttl: str | None = None  # of the cache, if it is written up to here


_Kind = TypeVar("_Kind", bound=Counted)


def params_of(told: Mapping[str, object]) -> Params:
    """Return the params of a message.

    Raises:
        ApiError: Something is missing, or not allowed.
    """
    return _checked(told, Params)


def counted_of(told: Mapping[str, object]) -> Counted:
    """Return the params of a count.

    Raises:
        ApiError: Something is missing, or not allowed.
    """
    return _checked(told, Counted)


def _checked(told: Mapping[str, object], kind: type[_Kind]) -> _Kind:
    try:
        params = msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        raise invalid(str(error)) from error
    model_named(params.model)
    if not all(turn.content for turn in params.messages):
        raise invalid("messages.0: text content blocks must be non-empty")
    if params.schema is not None:
        _check_schema(params.schema)
    return params


_REFUSED_KEYWORDS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "maxItems", "uniqueItems"}
)


def _check_schema(schema: Json) -> None:
    """Check a schema for what structured outputs do not take."""
    if schema.get("additionalProperties") is not False:
        raise invalid("schema: 'additionalProperties' must be set to false")
    for fields in properties_of(schema).values():
        for keyword in sorted(_REFUSED_KEYWORDS & fields.keys()):
            raise invalid(f"schema: property '{keyword}' is not supported")


def properties_of(schema: Json) -> dict[str, Json]:
    """Return the schemas of an object's properties, by name."""
    return msgspec.convert(schema.get("properties", {}), dict[str, Json])


def n_tokens_of(text: str) -> int:
    """Count the tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // _CHARS_PER_TOKEN)


def head_of(text: str, n_tokens: int) -> str:
    """Return the first tokens of a text."""
    return text[: n_tokens * _CHARS_PER_TOKEN]


def digest_of(params: Mapping[str, object]) -> str:
    """Return the digest that names a request in the bill: SHA-256 of its canonical JSON."""
    return hashlib.sha256(msgspec.json.encode(params, order="deterministic")).hexdigest()


def share_of(*names: str) -> float:
    """Return a number in [0, 1) that names always give: what happens to a share of requests."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


_LOWEST_EFFORT_TOKENS: Final = 40
THINKING_TOKENS: Final[Mapping[str, int]] = {
    effort: _LOWEST_EFFORT_TOKENS << step
    for step, effort in enumerate(("low", "medium", "high", "xhigh", "max"))
}


class Model(NamedTuple):
    """From how many tokens a model caches, and whether it always thinks before it writes."""

    model_id: str
    n_cacheable_tokens: int
    default_effort: str = "high"
    always_thinks: bool = False


_MODELS: Final[Mapping[str, Model]] = {
    model.model_id: model
    for model in (
        Model("claude-fable-5-2", 512, always_thinks=True),
        Model("claude-opus-5-5", 512, "medium", always_thinks=True),
        Model("claude-sonnet-5-5", 512),
        Model("claude-haiku-5-5", 4_096, "medium"),
        Model("claude-haiku-4-5", 4_096),
    )
}


def model_named(model_id: str) -> Model:
    """Return a model.

    Raises:
        ApiError: There is none of that name (404).
    """
    if model_id not in _MODELS:
        raise not_found(f"model: {model_id}")
    return _MODELS[model_id]
