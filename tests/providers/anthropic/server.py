"""A fake of the Anthropic API on loopback: `with FakeAnthropic() as fake: ... fake.url ...`.

The real SDK talks to it; it enforces what the API enforces, fails as the API fails, and keeps a
bill of its own. Paths that begin with an underscore are for tests, which tell it what to do.
`python -m tests.providers.anthropic` runs it as a process, see process.py.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from tests.providers.anthropic.batches import Clock, real_time
from tests.providers.anthropic.bill import Bill
from tests.providers.anthropic.errors import ApiError, invalid, not_found
from tests.providers.anthropic.exchange import (
    Answer,
    Fault,
    FaultPlan,
    Programme,
    Request,
    Shares,
    answer_of,
)
from tests.providers.anthropic.messages import Answering, judge
from tests.providers.anthropic.service import Service, error_of
from tests.providers.loopback import LoopbackFake, LoopbackServer

_PROGRAMME: Final = msgspec.json.Decoder(Programme)  # made before any thread, see decode_json


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: "FakeAnthropic"

    def serve(self) -> None:
        """Answer one request."""
        n_bytes = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(n_bytes)
        if len(body) < n_bytes:
            self._cut()  # the client went away as it sent: it has asked for nothing
            return
        if self.path == "/_connections":
            self._send(answer_of({"n_others": self.server.n_open - 1}))
            return
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query))
        self._send(self.fake.answer(Request(self.command, unquote(url.path), query, headers, body)))

    do_GET = serve  # noqa: N815 # the names that BaseHTTPRequestHandler looks for
    do_POST = serve  # noqa: N815 # as do_GET

    def log_message(self, *_args: object) -> None:
        """Say nothing: headers hold keys, and a test's output is its own."""

    def _send(self, answer: Answer) -> None:
        kind = None if answer.fault is None else answer.fault.kind
        if kind in {"cut_before", "cut_after"}:
            self._cut()
            return
        if answer.fault is not None and kind == "late":
            self.fake.plan.wait(answer.fault.delay_s)
        n_sent = len(answer.body) // 2 if kind == "cut_half" else len(answer.body)
        try:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body[:n_sent])
        except ConnectionError:
            self.close_connection = True
        if kind == "cut_half":
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # the client may have gone first
            self.connection.shutdown(socket.SHUT_RDWR)


class FakeAnthropic(LoopbackFake):
    """The fake, in this process, as long as its block lasts."""

    def __init__(
        self,
        *,
        answering: Answering = judge,
        ends_after_retrievals: int | None = 1,
        api_key: str | None = None,
        now: Callable[[], datetime] = real_time,
    ) -> None:
        """Make a fake.

        Args:
            answering: what the models reply.
            ends_after_retrievals: that found a batch open; None: it ends when it is told to.
            api_key: the one key that is taken; any, if None.
            now: the clock, which `advance` moves on.
        """
        self.plan = FaultPlan()
        self.service = Service(
            answering,
            self.plan,
            Clock(now),
            ends_after_retrievals=ends_after_retrievals,
            api_key=api_key,
        )
        super().__init__(type("BoundHandler", (_Handler,), {"fake": self}))

    def __enter__(self) -> Self:
        """Listen on a port of loopback that is free."""
        super().__enter__()
        self.service.base_url = self.url
        return self

    def let_go(self) -> None:
        """Let go of answers that wait."""
        self.plan.clear()

    @property
    def url(self) -> str:
        """The base_url for the SDK."""
        return f"http://127.0.0.1:{self.port}"

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        return self.service.bill(settle=settle)

    def inject(self, *faults: Fault, shares: Shares | None = None) -> None:
        """Let things go wrong."""
        self.plan.inject(faults, shares=shares)

    def clear(self) -> None:
        """Let everything go well again, and late answers come."""
        self.plan.clear()

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.service.advance(by)

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        self.service.end_batches()

    def answer(self, request: Request) -> Answer:
        """Answer a request to the API; or do what a test asks, which is no part of it."""
        if not request.path.startswith("/_"):
            return self.service.answer(request)
        try:
            return self._told(request)
        except msgspec.DecodeError as error:
            return error_of(invalid(f"{request.path}: {error}"))
        except ApiError as error:
            return error_of(error)

    def _told(self, request: Request) -> Answer:
        match request.method, request.path:
            case "GET", "/_bill":
                bill = self.bill(settle=request.query.get("settle") != "false")
                is_short = request.query.get("lines") == "false"
                return answer_of(msgspec.structs.replace(bill, lines=()) if is_short else bill)
            case "POST", "/_faults":
                programme = _PROGRAMME.decode(request.body)
                if programme.clear:
                    self.plan.clear()
                self.plan.inject(programme.faults, shares=programme.shares)
            case "POST", "/_end":
                self.end_batches()
            case _:
                raise not_found(f"{request.method} {request.path}")
        return answer_of({})
