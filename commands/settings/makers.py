"""Models by name: `openai/gpt-5.6` says where a model is asked, and which variable has the key."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from commands.settings.api_keys import ANTHROPIC_KEYS, OPENAI_KEY


class Maker(NamedTuple):
    """Who serves models by OpenAI's API: the address, and the variable with the key."""

    base_url: str
    api_key_env: str


MAKERS: Final[Mapping[str, Maker]] = {
    "openai": Maker("https://api.openai.com/v1", OPENAI_KEY),
    "anthropic": Maker("https://api.anthropic.com/v1", ANTHROPIC_KEYS[0]),
    "google": Maker("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "mistral": Maker("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "deepseek": Maker("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "xai": Maker("https://api.x.ai/v1", "XAI_API_KEY"),
    "groq": Maker("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "together": Maker("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "openrouter": Maker("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": Maker("http://localhost:11434/v1", "OLLAMA_API_KEY"),
    "vllm": Maker("http://localhost:8000/v1", "VLLM_API_KEY"),
}
"""By the word before a model's name; as of 2026-11."""
ANTHROPIC: Final = MAKERS["anthropic"]
_OWN: Final = frozenset({"ollama", "vllm"})  # on this machine: they need no key
_HOSTED: Final = frozenset(maker.base_url for name, maker in MAKERS.items() if name not in _OWN)


def key_variables(provider: str, api_key_env: str, base_url: str | None) -> tuple[str, ...]:
    """Return the variables of which one must hold a key; empty: none is needed for certain.

    Whether a server that is no maker's wants a key is known only once it is asked.

    Args:
        provider: A judge's provider; of an entrant behind a server `endpoint`.
        api_key_env: The variable that the settings name.
        base_url: The server's address; None: the provider's own.
    """
    match provider:
        case "anthropic" | "anthropic-batch":
            return ANTHROPIC_KEYS
        case "openai-batch":
            return (api_key_env,)
        case "endpoint" if is_anthropic(base_url, api_key_env):
            return ANTHROPIC_KEYS
        case "endpoint" if base_url in _HOSTED:
            return (api_key_env,)
        case _:
            return ()


def is_anthropic(base_url: str | None, api_key_env: str) -> bool:
    """Say whether a model is asked at Anthropic, with its key: by its own API."""
    return base_url == ANTHROPIC.base_url and api_key_env in ANTHROPIC_KEYS


def split_maker(model: object) -> tuple[str, str] | None:
    """Return the maker and the maker's own name of a model; None: the name has no known maker."""
    if not isinstance(model, str):
        return None
    maker, slash, name = model.partition("/")
    return (maker, name) if slash and name and maker in MAKERS else None


def with_address(table: Any) -> Any:  # noqa: ANN401  # what a file says: pydantic checks it
    """Return a table with what the name of its model says; an address that is there is kept."""
    if not isinstance(table, Mapping) or "base_url" in table:
        return table
    if (named := split_maker(table.get("model"))) is None:
        return table
    maker, model = named
    return {**MAKERS[maker]._asdict(), **table, "model": model}


def as_judge(table: Any) -> Any:  # noqa: ANN401  # likewise
    """Return a judge's table with what the name of its model says, its provider included."""
    if not isinstance(table, Mapping) or table.get("provider") in ("hf", "reference"):
        return table
    if "base_url" in table or (named := split_maker(table.get("model"))) is None:
        return table
    maker, model = named
    if maker == "anthropic" and table.get("provider") != "endpoint":
        found = {"provider": "anthropic", **table, "model": model}
    else:
        found = {"provider": "endpoint", **with_address(table)}
    pilot = split_maker(table.get("pilot_model"))
    return {**found, "pilot_model": pilot[1]} if pilot and pilot[0] == maker else found
