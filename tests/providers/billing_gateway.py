"""A gateway before a model, which bills whatever it is asked, and answers as a test says.

`with Gateway(answer) as gateway: ... gateway.url ...`
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event
from typing import Final, NamedTuple

import pytest

from tests.providers.loopback import Handler, LoopbackFake
from tests.providers.openai import Json, Said, completion

_USUAL_STATUSES: Final = (400, 401, 408, 429, 503)  # each is told apart from the others
STATUSES: Final = [
    each if each in _USUAL_STATUSES else pytest.param(each, marks=pytest.mark.nightly)
    for each in range(400, 600)
]
"""All that a gateway may fail by; the unusual ones at night."""


class Sent(NamedTuple):
    """An answer; a body that is no bytes is sent as JSON, None byte by byte without an end."""

    status: int
    body: object
    headers: Mapping[str, str] = {}


def well(body: Json, said: Said = Said()) -> Sent:  # noqa: B008  # it is frozen
    """Return the answer of a model that works."""
    return Sent(200, completion(body, said))


class Gateway(LoopbackFake):
    """The gateway, in this process, as long as its block lasts."""

    def __init__(self, answer: Callable[[int, Json], Sent]) -> None:
        """Take what answers a request for the first, second ... time."""
        self.asked: list[Json] = []
        self._answer = answer
        self.closing = Event()
        super().__init__(_Handler, gateway=self)

    def let_go(self) -> None:
        """End answers that have no end."""
        self.closing.set()

    def answer(self, body: Json) -> Sent:
        """Bill a request, and answer it."""
        self.asked.append(body)
        return self._answer(self.asked.count(body), body)


class _Handler(Handler):
    gateway: Gateway

    def serve(self) -> None:
        """Answer a request, and list no models."""
        if self.command == "GET":
            self._send(Sent(404, {"detail": "Not Found"}))
        else:
            self._send(self.gateway.answer(json.loads(self.received())))

    def _send(self, sent: Sent) -> None:
        if sent.body is None:
            self._drip()
            return
        content = sent.body if isinstance(sent.body, bytes) else json.dumps(sent.body).encode()
        self.send(sent.status, content, {**_USUAL, **sent.headers})

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.close_connection = True
        with suppress(ConnectionError):
            self.end_headers()
            while not self.gateway.closing.wait(0.02):
                self.wfile.write(b"1\r\nx\r\n")


_USUAL: Final[Mapping[str, str]] = {"content-type": "application/json", "retry-after-ms": "1"}
