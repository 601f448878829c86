"""A gateway on loopback: it passes requests on to a fake, and spoils what comes back.

`with Gateway(fake.port, spoil) as gateway: ... gateway.url ...`. Clients of any maker talk to it.
"""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Final

from tests.providers.loopback import Handler, LoopbackFake

_OF_A_CONNECTION: Final = frozenset(
    {"connection", "content-length", "transfer-encoding", "host", "accept-encoding", "server"}
)


@dataclass
class Passing:
    """A request that was passed on, and the answer, which may be changed."""

    method: str
    path: str
    status: int
    headers: MutableMapping[str, str]  # of the answer, in small letters
    body: bytes
    is_cut: bool = False  # no answer is sent

    @property
    def is_order(self) -> bool:
        """Whether it creates a batch, at either maker."""
        return (self.method, self.path.rpartition("/")[2]) == ("POST", "batches")

    @property
    def is_download(self) -> bool:
        """Whether it reads results, at either maker."""
        return self.path.endswith(("/results", "/content"))


Spoil = Callable[[Passing], None]


class Gateway(LoopbackFake):
    """The gateway, in this process, as long as its block lasts."""

    def __init__(self, upstream: int, spoil: Spoil) -> None:
        """Take the port of the fake, and what becomes of its answers."""
        super().__init__(_Handler, up=upstream, spoil=staticmethod(spoil))


class Stranger(LoopbackFake):
    """A server of somebody else, which notes the headers that it is sent."""

    def __init__(self) -> None:
        """Make it."""
        self.seen: list[dict[str, str]] = []
        super().__init__(_StrangersHandler, seen=self.seen)


class _StrangersHandler(Handler):
    seen: list[dict[str, str]]

    def serve(self) -> None:
        """Note the headers."""
        self.seen.append(dict(self.headers.items()))
        self.send(200, b"", {})


class _Handler(Handler):
    up: int
    spoil: Spoil

    def serve(self) -> None:
        """Pass a request on."""
        passing = self._passed(self.received())
        self.spoil(passing)
        if passing.is_cut:
            self.close_connection = True
            return
        self.send_response_only(passing.status)  # the date is the fake's
        for name, value in passing.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(passing.body)))
        self.end_headers()
        self.wfile.write(passing.body)

    def _passed(self, body: bytes) -> Passing:
        upstream = HTTPConnection("127.0.0.1", self.up)
        try:
            asked = {k: v for k, v in self.headers.items() if k.lower() not in _OF_A_CONNECTION}
            upstream.request(self.command, self.path, body, asked)
            answer = upstream.getresponse()
            told = {k.lower(): v for k, v in answer.getheaders()}
            kept = {k: v for k, v in told.items() if k not in _OF_A_CONNECTION}
            path = self.path.partition("?")[0]
            return Passing(self.command, path, answer.status, kept, answer.read())
        finally:
            upstream.close()
