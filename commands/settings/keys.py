"""API keys: the environment variables that providers' keys are read from."""

import os
from typing import Final

from commands.errors import NoCredentials

ANTHROPIC_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Where Anthropic's client looks, in this order."""
OPENAI_KEY: Final = "OPENAI_API_KEY"
"""Where OpenAI's client looks, and the default for every server with its API."""
VARIABLE: Final = r"^[A-Z_][A-Z0-9_]*$"
"""The name of an environment variable; no server's key looks like one."""


def key_variables(provider: str, api_key_env: str) -> tuple[str, ...]:
    """Return the variables of which one must hold a key; empty: none is needed for certain.

    Whether a server wants a key is known only once it is asked.

    Args:
        provider: A judge's provider.
        api_key_env: The variable that the judge's settings name.
    """
    match provider:
        case "anthropic" | "anthropic-batch":
            return ANTHROPIC_KEYS
        case "openai-batch":
            return (api_key_env,)
        case _:
            return ()


def key_in(variable: str) -> str | None:
    """Return the key in an environment variable; None: the variable is not set.

    Raises:
        NoCredentials: It has characters that no header can hold; a library would quote it.
    """
    key = os.environ.get(variable)
    if key is not None and not all("!" <= character <= "~" for character in key):
        why = f"{variable} contains a space, a line break or another invalid character"
        raise NoCredentials(why, variable, instead="unset it, if the server needs no key")
    return key
