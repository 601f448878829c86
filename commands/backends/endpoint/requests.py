"""Judge queries as requests to chat completions, asked one by one or in batches."""

import json
import re
from collections.abc import Mapping
from typing import Final

from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.verdicts.queries import JudgeQuery, PairQuery

PATH: Final = "/chat/completions"
PLAIN_PATH: Final = "/completions"
"""Where requests go, below the server's base_url: chats, and plain texts."""


class ChatForm:
    """The settings that all requests of one judge share."""

    def __init__(self, judge: JudgeSettings) -> None:
        """Set the form of a judge's requests; judge.model is its name on the server."""
        parameters = dict(judge.parameters)
        is_openai = judge.provider == "openai-batch"  # whose newer models take no max_tokens
        shared: dict[str, Json] = {
            "model": judge.model,
            "max_completion_tokens" if is_openai else "max_tokens": int(parameters["max_tokens"]),
            "temperature": 0.0,
        }
        if "reasoning_effort" in parameters:
            shared["reasoning_effort"] = parameters["reasoning_effort"]
        self.shared = shared  # by all requests
        self._has_schema = judge.protocol == "schema"
        self._extra: dict[str, Json] = json.loads(str(parameters.get("extra_body", "{}")))

    def body(self, query: JudgeQuery) -> dict[str, Json]:
        """Return the JSON of a request."""
        turns = (
            {"role": "system", "content": query.system},
            {"role": "user", "content": query.user},
        )
        return {**self.shared, **self._format(query), **self._extra, "messages": turns}

    def _format(self, query: JudgeQuery) -> dict[str, Json]:
        """Return the schema of a reply if the protocol is one."""
        if not self._has_schema:
            return {}
        name = "verdict" if isinstance(query, PairQuery) else "score"
        schema: dict[str, Json] = {"name": name, "strict": True, "schema": query.reply_schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}


_REMEDIES: Final[Mapping[str, str]] = {
    "reasoning_effort": "change or remove reasoning_effort",
    "response_format": 'set protocol = "line"',
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "temperature"), "choose another model or server"
    ),
}
INSTEAD: Final[Mapping[str, str | None]] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "reasoning_effort": None,
    "seed": None,
}
"""What a request can do without, or says by another name: all that is learnt from a rejection."""

_UNTOLD: Final = frozenset({"", "None", "null"})  # LiteLLM says "None"
_OF_VALUE: Final = re.compile(r"unsupported value|invalid value", re.IGNORECASE)
_UNSUPPORTED: Final = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|extra inputs|not permitted", re.IGNORECASE
)


def can_do_without(name: object, message: str) -> bool:
    """Say whether a request can do without a parameter that a rejection names, or rename it.

    A misspelt effort is no such: without it, another judge would answer.
    """
    is_misspelt = name == "reasoning_effort" and _OF_VALUE.search(message) is not None
    return name in INSTEAD and not is_misspelt


def remedy_of(message: str, told: object = None) -> str | None:
    """Return what to change if a server does not know a key, or its value; else None."""
    names = refused_parameters(message, told)
    return _REMEDIES.get(names[0]) if names else None


def refused_parameters(message: str, told: object = None) -> tuple[str, ...]:
    """Return which parameters a server does not know, or not with their values, in its order.

    Such a rejection is of every request. One of a prompt that is too long may name a key, too, but
    not as unsupported.

    Args:
        message: The server's words. They may quote the request.
        told: The field in which the server names the parameter; if it does, nothing else counts.
    """
    if not _UNSUPPORTED.search(message):
        return ()
    words = re.findall(r"\w+", str(told) if is_told(told) else message)
    return tuple(word for word in words if word in _REMEDIES or word in INSTEAD)


def is_told(param: object) -> bool:
    """Say whether the field in which servers name a parameter names one."""
    return isinstance(param, str) and param not in _UNTOLD
