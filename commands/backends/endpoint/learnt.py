"""Learn from a server's rejections which parameters it does not take for a model.

OpenAI's reasoning models want `max_completion_tokens` and no temperature, others know no seed: the
first rejection says so, once for each server and model. Nothing is paid for it, and no key of a
query or response changes; what was learnt is recorded beside them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Final

import openai

from commands.backends.endpoint.post import Post
from commands.backends.endpoint.requests import REMEDIES, UNSUPPORTED
from commands.settings.api_keys import redacted
from ledger.events.requests import ParameterRefused
from ledger.identity import Json

_INVALID: Final = frozenset({400, 422})
_INSTEAD: Final[Mapping[str, str | None]] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "reasoning_effort": None,
    "seed": None,
}
"""What a request can do without, or says by another name: all that is learnt from a rejection."""


class LearntParameters:
    """What a server does not take for a model, by its own rejections; threads may share it."""

    def __init__(self, base_url: str, model: str, known: Iterable[ParameterRefused] = ()) -> None:
        """Begin with what is known of the server and the model."""
        self._base_url, self._model = base_url, model
        self._refused = {
            each.parameter: each.instead
            for each in known
            if (each.base_url, each.model) == (base_url, model)
        }
        self._news: list[ParameterRefused] = []
        self._lock = Lock()

    def adapt(self, post: Post) -> Post:
        """Return what posts without what the server does not take, and learns from rejections."""

        def send(path: str, body: Mapping[str, Json]) -> bytes:
            while True:
                adapted = self._adapted(body)
                try:
                    return post(path, adapted)
                except openai.APIStatusError as error:
                    if not self._learns(error, adapted):
                        raise

        return send

    def news(self) -> Sequence[ParameterRefused]:
        """Return what was learnt since the last time."""
        with self._lock:
            news, self._news = self._news, []
        return news

    def _adapted(self, body: Mapping[str, Json]) -> Mapping[str, Json]:
        with self._lock:
            names = {name: self._refused.get(name, name) for name in body}
        return {name: body[old] for old, name in names.items() if name is not None}

    def _learns(self, error: openai.APIStatusError, sent: Mapping[str, Json]) -> bool:
        """Return whether a rejection names a parameter that the request can do without."""
        detail = redacted(str(error))
        named = [error.param or "", *re.findall(r"\w+", detail)]
        name = next((each for each in named if each in REMEDIES or each in _INSTEAD), "")
        is_of_a_key = error.status_code in _INVALID and UNSUPPORTED.search(detail) is not None
        if not is_of_a_key or name not in _INSTEAD or name not in sent:
            return False
        instead = _INSTEAD[name]
        with self._lock:
            if name in self._refused:  # learnt by another thread meanwhile
                return True
            if instead in self._refused:  # it takes neither name
                return False
            self._refused[name] = instead
            self._news.append(
                ParameterRefused(
                    base_url=self._base_url,
                    model=self._model,
                    parameter=name,
                    instead=instead,
                    detail=detail,
                )
            )
        return True


def described(refused: ParameterRefused) -> str:
    """Say what a server does not take, and what is sent in its place."""
    otherwise = f"{refused.instead} is sent instead" if refused.instead else "it is left out"
    return (
        f"{refused.model} at {refused.base_url} does not take {refused.parameter}: {otherwise},"
        " in all later requests, too"
    )
