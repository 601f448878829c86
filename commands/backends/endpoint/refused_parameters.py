"""Learn from a server's rejections which parameters it does not take for a model.

OpenAI's reasoning models want `max_completion_tokens` and no temperature, others know no seed: the
first rejection says so, once for each server and model. It is believed once a request in the other
form is answered: a rejection may quote the request, and mean something else. One that was perhaps
billed is not sent again by itself: it is given back, to be recorded and sent as another; if that is
rejected for good, what it went without is suspected no more. No key of a query or response changes;
what was learnt is recorded beside them.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from threading import Lock
from typing import Final, TypeAlias

import openai

from commands.backends.endpoint.requests import INSTEAD, can_do_without, refused_parameters
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
Parameters: TypeAlias = Mapping[str, ParameterRefused]
"""Parameters that a server does not take, or is suspected not to take, by name."""


class LearntParameters:
    """What a server does not take for a model, by its own rejections; threads may share it."""

    def __init__(self, base_url: str, model: str, known: Iterable[ParameterRefused] = ()) -> None:
        """Begin with what is known of the server and the model."""
        self._base_url, self._model = base_url, model
        self._refused = {
            each.parameter: each
            for each in known
            if (each.base_url, each.model) == (base_url, model)
        }
        self._suspected: dict[str, ParameterRefused] = {}  # until a request without it is answered
        self._disproved: set[str] = set()
        self._news: list[ParameterRefused] = []
        self._lock = Lock()

    @property
    def without(self) -> Parameters:
        """What requests are sent without, or by another name, by parameter."""
        with self._lock:
            return self._suspected | self._refused

    def adapt(self, post: Post) -> Post:
        """Return what posts without what the server does not take, and learns from rejections."""

        def send(path: str, body: Mapping[str, Json]) -> bytes:
            without = self.without
            while True:
                sent = adapted(body, without)
                try:
                    answer = post(path, sent)
                except openai.APIStatusError as error:
                    if error.status_code not in _INVALID:
                        raise
                    detail, told = redacted(error_message(error)), details_of(error).get("param")
                    found = self.refusals_in(detail, told, sent, without)
                    if not found:
                        if refused_parameters(detail, told):
                            self._disprove(without)
                        raise
                    without = {**without, **found}
                    if fate_of(error.status_code, kinds_of(error)) == "perhaps billed":
                        with self._lock:
                            self._suspected |= found
                        raise AskOtherwise(error) from None
                else:
                    self.believe(without)
                    return answer

        return send

    def refusals_in(
        self,
        detail: str,
        told: object,
        sent: Container[str],
        without: Container[str | None],
    ) -> Parameters:
        """Return the first parameter that a rejection names and the request can do without.

        Args:
            detail: The server's words.
            told: The field in which the server names the parameter.
            sent: The parameters of the request.
            without: Those that it went without, or by another name.
        """
        name = next((each for each in refused_parameters(detail, told) if each in sent), None)
        if name is None or name in self._disproved or not can_do_without(name, detail):
            return {}
        if INSTEAD[name] in without:  # it takes neither name
            return {}
        return {name: self._refusal(name, detail)}

    def believe(self, found: Parameters) -> None:
        """Take findings for certain: a request was answered in their form."""
        with self._lock:
            for name, each in found.items():
                self._suspected.pop(name, None)
                if not {name, each.instead} & self._refused.keys():
                    self._refused[name] = each
                    self._news.append(each)

    def news(self) -> Sequence[ParameterRefused]:
        """Return what was learnt since the last time."""
        with self._lock:
            news, self._news = self._news, []
        return news

    def _disprove(self, without: Container[str]) -> None:
        """Suspect no more what a request went without in vain."""
        with self._lock:
            in_vain = {name for name in self._suspected if name in without}
            self._disproved |= in_vain
            for name in in_vain:
                del self._suspected[name]

    def _refusal(self, name: str, detail: str) -> ParameterRefused:
        return ParameterRefused(
            base_url=self._base_url,
            model=self._model,
            parameter=name,
            instead=INSTEAD[name],
            detail=detail,
        )


def adapted(body: Mapping[str, Json], without: Parameters) -> Mapping[str, Json]:
    """Return a body without parameters, or with their other names."""
    names = {name: without[name].instead if name in without else name for name in body}
    return {name: body[old] for old, name in names.items() if name is not None}
