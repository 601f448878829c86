"""API keys: the environment variables that they are read from, and texts without them.

Servers quote in their answers what they were sent, keys among it. What they answer is kept for
ever, so keys are taken out of it as it comes in.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from commands.errors import NoCredentials, joined_names

ANTHROPIC_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Where Anthropic's client looks, in this order."""
OPENAI_KEY: Final = "OPENAI_API_KEY"
"""Where OpenAI's client looks, and the default for every server with its API."""
VARIABLE: Final = r"^[A-Z_][A-Z0-9_]*$"
"""The name of an environment variable; no server's key looks like one."""


def key_in(variable: str) -> str | None:
    """Return the key in an environment variable; None: the variable is not set.

    Raises:
        NoCredentials: It has characters that no header can hold; a library would quote it.
    """
    key = os.environ.get(variable)
    remember(key)
    if key is not None and not all("!" <= character <= "~" for character in key):
        why = f"{variable} contains a space, a line break or another invalid character"
        raise NoCredentials(why, variable, instead="unset it, if the server needs no key")
    return key


def first_set(variables: Iterable[str]) -> str | None:
    """Return the first of some variables that holds a key; None: none does."""
    return next((name for name in variables if os.environ.get(name)), None)


def require_keys(needed: Mapping[str, tuple[str, ...]]) -> None:
    """Require every API key that is needed, before work is done that would be in vain.

    Args:
        needed: By who needs a key, the variables of which one must hold it; empty: none is needed.

    Raises:
        NoCredentials: Keys are missing; all are named.
    """
    missing = {who: names[0] for who, names in needed.items() if names and not first_set(names)}
    if missing:
        lack = "needs an API key" if len(missing) == 1 else "need API keys"
        why = f"{joined_names([*missing])} {lack}, and none is set"
        variables = "=... ".join(dict.fromkeys(missing.values()))
        if any(who.startswith("judge") for who in missing):
            raise NoCredentials(why, variables)
        raise NoCredentials(why, variables, instead="set base_url to another server")


_REDACTED: Final = "[key]"
_LEAST: Final = 8  # characters of a key; a shorter one is a placeholder, such as "none" or "EMPTY"
_KEPT_IN: Final = re.compile(
    rf"ANTHROPIC_\w*(?:KEY|TOKEN|SECRET)|(?:{OPENAI_KEY}|HF_TOKEN|HUGGING_FACE_HUB_TOKEN)$"
)
_remembered: Final[set[str]] = set()


def remember(key: str | None) -> None:
    """Take a key out of all that servers answer from now on."""
    if key is not None and len(key) >= _LEAST:
        _remembered.update({key, key.replace("\\", r"\\").replace('"', r"\"")})  # and as in JSON


def without_keys(text: str) -> str:
    """Return a text without the keys that this process knows; else it stays as it is."""
    for name in os.environ:  # of each reply: most names say enough, without their values
        if _KEPT_IN.match(name):
            remember(os.environ.get(name))
    for key in sorted(_remembered, key=len, reverse=True):  # one may begin with another
        text = text.replace(key, _REDACTED)
    return text


_VALUE: Final = r"[^\s\"'&,;()\[\]{}<>\\]"
_SIGNS: Final = (
    (r"\b(https?://)[^\s/?#\"'<>\\]*@", r"\1"),  # user name and password
    (rf"\b(https?://[^\s?#\"'<>\\]+)[?#]{_VALUE}*", r"\1"),
    (rf"\b(Bearer|Basic)\s+{_VALUE}{{8,}}", rf"\1 {_REDACTED}"),
    (r"\b(?:sk|gsk|hf|xai)[-_][\w*-]{8,}|\bAIza[\w-]{20,}", _REDACTED),
    (
        rf"\b((?:x-)?(?:api|access)[-_ ]?(?:key|token)[\"']?\s*[:=]\s*[\"']?){_VALUE}{{4,}}",
        rf"\1{_REDACTED}",
    ),
    (rf"(?<![\w-])((?:key|token|secret|password)=){_VALUE}{{4,}}", rf"\1{_REDACTED}"),
    (
        rf"\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)(?!Bearer|Basic){_VALUE}{{4,}}",
        rf"\1{_REDACTED}",
    ),
)
_PATTERNS: Final = tuple((re.compile(sign, re.IGNORECASE), put) for sign, put in _SIGNS)


def redacted(text: str) -> str:
    """Return a message without what is a key, or looks like one, or may hide one in a URL.

    A model's reply is none: what looks like a key there may be what was asked for.
    """
    text = without_keys(text)
    for pattern, put in _PATTERNS:
        text = pattern.sub(put, text)
    return text
