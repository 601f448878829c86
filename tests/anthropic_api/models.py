"""The models the fake knows: those the SDK names, with what differs between them.

Minimum prefixes are those of the documentation of autumn 2026; where it has none, a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.anthropic_api.errors import not_found

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
    takes_prefill: bool = True
    takes_forced_tools: bool = True


def _newest(model_id: str, **differing: object) -> Model:
    """Return a model that rejects a forced tool_choice and caches from 512 tokens on."""
    given: dict[str, object] = {"n_cacheable_tokens": 512, "n_output_tokens": 128_000, **differing}
    return Model(model_id, takes_forced_tools=False, **given)  # type: ignore[arg-type]  # as named


MODELS: Final[Mapping[str, Model]] = {
    model.model_id: model
    for model in (
        _newest("claude-fable-5-2", always_thinks=True),
        _newest("claude-fable-5-1", always_thinks=True),
        _newest("claude-fable-5", always_thinks=True),
        _newest(
            "claude-opus-5-5", always_thinks=True, takes_prefill=False, default_effort="medium"
        ),
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
        "capabilities": _capabilities(model),
    }


def _capabilities(model: Model) -> dict[str, object]:
    yes, no = {"supported": True}, {"supported": False}
    optional = no if model.always_thinks else yes
    return {
        **dict.fromkeys(("batch", "citations", "code_execution", "image_input", "pdf_input"), yes),
        "context_management": yes,
        "effort": {**yes, **dict.fromkeys(THINKING_TOKENS, yes)},
        "server_tools": {**yes, "code_execution": yes, "web_search": yes},
        "structured_outputs": yes,
        "thinking": {
            **yes,
            "types": {
                "adaptive": yes,
                "between_tools": optional,
                "disabled": optional,
                "enabled": optional,
            },
        },
    }
