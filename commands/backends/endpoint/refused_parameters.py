"""Learn from a server's rejections which parameters it does not take for a model.

OpenAI's reasoning models want `max_completion_tokens` and no temperature, others know no seed: the
first rejection says so, once for each server and model. It is believed once a request in the other
form is answered: a rejection may quote the request, and mean something else. One that was perhaps
billed is not sent again by itself: it is given back, to be recorded and sent as another. No key of
a query or response changes; what was learnt is recorded beside them.
"""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Final

import openai

from commands.backends.endpoint.requests import INSTEAD, can_do_without, refused_parameter
from commands.backends.endpoint.server import (
    AskOtherwise,
    Post,
    details_of,
    error_message,
    kinds_of,
)
from commands.backends.remote.outcomes import fate_of
from commands.settings.api_keys import redacted
from ledger.events.requests import ParameterRefused
from ledger.identity import Json

_INVALID: Final = frozenset({400, 422})


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
        self._suspected: Mapping[str, ParameterRefused] = {}  # by rejections perhaps billed
        self._news: list[ParameterRefused] = []
        self._lock = Lock()

    def adapt(self, post: Post) -> Post:
        """Return what posts without what the server does not take, and learns from rejections."""

        def send(path: str, body: Mapping[str, Json]) -> bytes:
            found = dict(self._suspected)
            while True:
                adapted = self.adapted(body, found)
                try:
                    answer = post(path, adapted)
                except openai.APIStatusError as error:
                    if error.status_code not in _INVALID:
                        raise
                    found |= self._found(error, adapted, found)
                    if self.adapted(body, found) == adapted:
                        self._suspected = {}
                        raise
                    if fate_of(error.status_code, kinds_of(error)) == "perhaps billed":
                        self._suspected = found
                        raise AskOtherwise(error) from None
                else:
                    self._learn(found.values())
                    return answer

        return send

    def learn_told(self, name: object, detail: str) -> ParameterRefused | None:
        """Learn of a parameter that a server names as one that it does not take, in no quotation.

        Returns:
            What was learnt, be it news or not; None: a request cannot do without it, nor say it by
            another name.
        """
        if not isinstance(name, str) or not can_do_without(name, detail):
            return None
        if not refused_parameter(detail, name):
            return None
        known = self._known({})
        if name not in known and INSTEAD[name] in known:  # it takes neither name
            return None
        refused = self._refusal(name, detail)
        self._learn([refused])
        return refused

    def news(self) -> Sequence[ParameterRefused]:
        """Return what was learnt since the last time."""
        with self._lock:
            news, self._news = self._news, []
        return news

    def adapted(
        self, body: Mapping[str, Json], found: Mapping[str, ParameterRefused] = MappingProxyType({})
    ) -> Mapping[str, Json]:
        """Return a body without what the server does not take."""
        known = self._known(found)
        names = {name: known.get(name, name) for name in body}
        return {name: body[old] for old, name in names.items() if name is not None}

    def _known(self, found: Mapping[str, ParameterRefused]) -> Mapping[str, str | None]:
        """Return what is sent in place of what, the findings of one request included."""
        with self._lock:
            return {name: each.instead for name, each in found.items()} | self._refused

    def _found(
        self,
        error: openai.APIStatusError,
        sent: Mapping[str, Json],
        found: Mapping[str, ParameterRefused],
    ) -> Mapping[str, ParameterRefused]:
        """Return the parameter that a rejection names, if the request can do without it."""
        detail = redacted(error_message(error))
        name = refused_parameter(detail, details_of(error).get("param"))
        if name is None or name not in sent or not can_do_without(name, detail):
            return {}
        if INSTEAD[name] in self._known(found):  # it takes neither name
            return {}
        return {name: self._refusal(name, detail)}

    def _refusal(self, name: str, detail: str) -> ParameterRefused:
        return ParameterRefused(
            base_url=self._base_url,
            model=self._model,
            parameter=name,
            instead=INSTEAD[name],
            detail=detail,
        )

    def _learn(self, found: Iterable[ParameterRefused]) -> None:
        """Believe findings: the request was answered in their form."""
        with self._lock:
            for each in found:
                if not {each.parameter, each.instead} & self._refused.keys():
                    self._refused[each.parameter] = each.instead
                    self._news.append(each)
