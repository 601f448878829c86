"""Learn from a server's rejections which parameters it does not take for a model.

OpenAI's reasoning models want `max_completion_tokens` and no temperature, others know no seed: the
first rejection says so, once for each server and model. It is believed once a request in the other
form is answered: a rejection may quote the request, and mean something else. If the other form is
rejected for good, what it went without is suspected no more. No key of a query or response changes;
what was learnt is recorded beside them.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from threading import Lock
from typing import Final, TypeAlias

from ledger.events.requests import ParameterRefused
from ledger.identity import Json

Parameters: TypeAlias = Mapping[str, ParameterRefused]
"""Parameters that a server does not take, or is suspected not to take, by name."""

_INSTEAD: Final[Mapping[str, str | None]] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": None,
    "reasoning_effort": None,
    "seed": None,
}
"""What a request can do without, or says by another name: all that is learnt from a rejection."""

_REMEDIES: Final[Mapping[str, str]] = {
    "reasoning_effort": "change or remove effort",
    "response_format": 'set protocol = "line"',
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "temperature"), "choose another model or server"
    ),
}
_UNTOLD: Final = frozenset({"", "None", "null"})  # LiteLLM says "None"
_OF_VALUE: Final = re.compile(r"unsupported value|invalid value", re.IGNORECASE)
_UNSUPPORTED: Final = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|extra inputs|not permitted", re.IGNORECASE
)


class LearntParameters:
    """What a server does not take for a model, by its own rejections; threads may share it."""

    def __init__(self, base_url: str, model: str, known: Iterable[ParameterRefused] = ()) -> None:
        """Begin with what is known of the server and the model."""
        self._base_url, self._model = base_url, model
        self._refused = {
            refusal.parameter: refusal
            for refusal in known
            if (refusal.base_url, refusal.model) == (base_url, model)
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

    def refusals_in(
        self,
        detail: str,
        told: object,
        sent: Container[str],
        without: Container[str | None],
    ) -> Parameters:
        """Return the first parameter that a rejection names and the request can do without.

        If it can do without none, what it went without is suspected no more.

        Args:
            detail: The server's words.
            told: The field in which the server names the parameter.
            sent: The parameters of the request.
            without: Those that it went without, or by another name.
        """
        named = _refused(detail, told)
        name = next((each for each in named if each in sent), None)
        if name is None or name in self._disproved or not can_do_without(name, detail):
            found: Parameters = {}
        elif (instead := _INSTEAD[name]) in without:  # it takes neither name
            found = {}
        else:
            found = {
                name: ParameterRefused(
                    base_url=self._base_url,
                    model=self._model,
                    parameter=name,
                    instead=instead,
                    detail=detail,
                )
            }
        if named and not found:
            self._disprove(without)
        return found

    def suspect(self, found: Parameters) -> None:
        """Send requests without some parameters, to see whether they are answered."""
        with self._lock:
            self._suspected |= found

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

    def _disprove(self, without: Container[str | None]) -> None:
        with self._lock:
            in_vain = {name for name in self._suspected if name in without}
            self._disproved |= in_vain
            for name in in_vain:
                del self._suspected[name]


def adapted(body: Mapping[str, Json], without: Parameters) -> Mapping[str, Json]:
    """Return a body without parameters, or with their other names."""
    names = {name: without[name].instead if name in without else name for name in body}
    return {name: body[old] for old, name in names.items() if name is not None}


def can_do_without(name: object, message: str) -> bool:
    """Say whether a request can do without a parameter that a rejection names, or rename it.

    A misspelt effort is no such: without it, another judge would answer.
    """
    is_misspelt = name == "reasoning_effort" and _OF_VALUE.search(message) is not None
    return name in _INSTEAD and not is_misspelt


def remedy_of(message: str, told: object = None) -> str | None:
    """Return what to change if a server does not know a key, or its value; else None."""
    named = _refused(message, told)
    return _REMEDIES.get(named[0]) if named else None


def _refused(message: str, told: object) -> tuple[str, ...]:
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
    return tuple(word for word in words if word in _REMEDIES or word in _INSTEAD)


def is_told(param: object) -> bool:
    """Say whether the field in which servers name a parameter names one."""
    return isinstance(param, str) and param not in _UNTOLD
