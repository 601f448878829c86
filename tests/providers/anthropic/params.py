"""What the API refuses of the params of one request: at once, or when its batch is processed."""

from typing import Final

from tests.providers.anthropic.errors import invalid
from tests.providers.anthropic.prompt import (
    THINKING_TOKENS,
    Json,
    Model,
    breakpoints,
    check_schema,
    model_named,
    object_of,
)

_WITHOUT_SAMPLING: Final = "2026-10-21"
_SAMPLING: Final = frozenset({"temperature", "top_p", "top_k"})
_KNOWN_FIELDS: Final = _SAMPLING | {
    *("model", "max_tokens", "messages", "cache_control", "container", "diagnostics"),
    *("inference_geo", "metadata", "output_config", "service_tier", "speed", "stop_sequences"),
    *("stream", "system", "thinking", "tool_choice", "tools", "user_profile_id", "workspace_id"),
}
_COUNTED_FIELDS: Final = frozenset(
    {"model", "messages", "cache_control", "output_config", "system", "thinking"}
    | {"tool_choice", "tools"}
)
_MAX_BREAKPOINTS: Final = 4


def check_params(params: Json, *, version: str, in_batch: bool = False) -> Model:
    """Return the model that a Messages request is for.

    Raises:
        ApiError: something is missing, not allowed, or not of this API version.
    """
    _check_fields(params, _KNOWN_FIELDS, version)
    model = _model_of(params)
    _check_max_tokens(params, model)
    if in_batch and params.get("stream"):
        raise invalid("stream: not allowed in a batch")
    if in_batch and str(params.get("speed") or "standard") != "standard":
        raise invalid("speed: not allowed in a batch")
    _check_content(params, model)
    return model


def check_counted(params: Json, *, version: str) -> Model:
    """Return the model that a count_tokens request is for.

    Raises:
        ApiError: something is missing or not allowed.
    """
    _check_fields(params, _COUNTED_FIELDS, version)
    model = _model_of(params)
    _check_content(params, model)
    return model


def _check_fields(params: Json, known: frozenset[str], version: str) -> None:
    if version >= _WITHOUT_SAMPLING:
        known -= _SAMPLING
    for unknown in sorted(params.keys() - known):
        raise invalid(f"{unknown}: Extra inputs are not permitted")


def _model_of(params: Json) -> Model:
    match params.get("model"):
        case str(model_id):
            return model_named(model_id)
        case None:
            raise invalid("model: Field required")
        case _:
            raise invalid("model: Input should be a valid string")


def _check_max_tokens(params: Json, model: Model) -> None:
    match params.get("max_tokens"):
        case None:
            raise invalid("max_tokens: Field required")
        case bool():
            raise invalid("max_tokens: Input should be a valid integer")
        case int(n_tokens) if n_tokens < 1:
            raise invalid("max_tokens: Input should be greater than or equal to 1")
        case int(n_tokens) if n_tokens > model.n_output_tokens:
            most = f"which is the maximum allowed number of output tokens for {model.model_id}"
            raise invalid(f"max_tokens: {n_tokens} > {model.n_output_tokens}, {most}")
        case int():
            return
        case _:
            raise invalid("max_tokens: Input should be a valid integer")


def _check_content(params: Json, model: Model) -> None:
    _check_system(params.get("system"))
    _check_messages(params.get("messages"))
    _check_thinking(params.get("thinking"), model)
    _check_output_config(params.get("output_config"))
    check_breakpoints(params)


def _check_system(system: object) -> None:
    match system:
        case None | str():
            return
        case [*blocks]:
            for place, block in enumerate(blocks):
                _check_block(f"system.{place}", block)
        case _:
            raise invalid("system: Input should be a valid string or a list of text blocks")


def _check_messages(messages: object) -> None:
    match messages:
        case None:
            raise invalid("messages: Field required")
        case [*_]:
            pass
        case _:
            raise invalid("messages: Input should be a valid list")
    if not messages:
        raise invalid("messages: at least one message is required")
    for place, message in enumerate(messages):
        _check_message(f"messages.{place}", message)
    roles = [str((object_of(message) or {})["role"]) for message in messages]
    if roles[0] == "assistant":
        raise invalid('messages: first message must use the "user" role')


def _check_message(where: str, message: object) -> None:
    match message:
        case {"role": "user" | "assistant" | "system", "content": str(text)} if text:
            return
        case {"role": "user" | "assistant" | "system", "content": [_, *_] as blocks}:
            for place, block in enumerate(blocks):
                _check_block(f"{where}.content.{place}", block)
        case {"role": "user" | "assistant" | "system", "content": "" | []}:
            raise invalid(f"{where}: text content blocks must be non-empty")
        case {"role": "user" | "assistant" | "system"}:
            raise invalid(f"{where}.content: Field required")
        case _:
            raise invalid(f"{where}.role: Input should be 'user', 'assistant' or 'system'")


def _check_block(where: str, block: object) -> None:
    match block:
        case {"type": "text", "text": str(text)} if text:
            return
        case {"type": "text", "text": str()}:
            raise invalid("messages: text content blocks must be non-empty")
        case {"type": "text"}:
            raise invalid(f"{where}.text.text: Field required")
        case {"type": str()}:
            return
        case _:
            raise invalid(f"{where}.type: Field required")


def _check_thinking(thinking: object, model: Model) -> None:
    match thinking:
        case {"type": "disabled" | "enabled" | "between_tools" as kind} if model.always_thinks:
            raise invalid(f"thinking.type: {kind!r} is not supported by {model.model_id}")
        case None | {"type": "disabled" | "enabled" | "between_tools" | "adaptive"}:
            return
        case _:
            raise invalid("thinking: Input should be a thinking configuration")


def _check_output_config(config: object) -> None:
    if config is None:
        return
    fields = object_of(config)
    if fields is None:
        raise invalid("output_config: Input should be an object")
    for unknown in sorted(fields.keys() - {"effort", "format"}):
        raise invalid(f"output_config.{unknown}: Extra inputs are not permitted")
    effort = fields.get("effort")
    if effort is not None and str(effort) not in THINKING_TOKENS:
        raise invalid(f"output_config.effort: one of {', '.join(THINKING_TOKENS)}")
    _check_format(fields.get("format"))


def _check_format(wanted: object) -> None:
    match wanted:
        case None:
            return
        case {"type": "json_schema", "schema": {**schema}}:
            check_schema(schema)
        case _:
            raise invalid("output_config.format: a json_schema with its schema")


def check_breakpoints(params: Json) -> None:
    """Check the cache breakpoints, which stand in prompt order.

    Raises:
        ApiError: more than four, one not ephemeral, or one of an hour after one of minutes (400).
    """
    ttls = [_ttl_of(mark) for mark in breakpoints(params)]
    if len(ttls) > _MAX_BREAKPOINTS:
        found = f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided"
        raise invalid(f"{found}. Found {len(ttls)}.")
    if ttls != sorted(ttls):
        raise invalid("cache_control: a ttl='1h' block must not come after a ttl='5m' block")


def _ttl_of(mark: object) -> str:
    match mark:
        case {"type": "ephemeral", "ttl": "5m" | "1h" as ttl}:
            return str(ttl)
        case {"type": "ephemeral", "ttl": _}:
            raise invalid("cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
        case {"type": "ephemeral"}:
            return "5m"
        case _:
            raise invalid("cache_control.type: Input should be 'ephemeral'")
