"""A fake of the Anthropic API on loopback: `with FakeAnthropic() as fake: ... fake.url ...`.

The real SDK talks to it; it enforces what the API enforces, fails as the API fails, and keeps a
bill of its own. Paths that begin with an underscore are for tests, which tell it what to do.
`python -m tests.providers.anthropic` runs it as a process, see process.py.
"""

import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO, Final, Protocol, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from tests.providers.anthropic.batches import Batches, Clock, Pace, real_time
from tests.providers.anthropic.bill import Bill, Books
from tests.providers.anthropic.errors import ApiError, Limits, Rates, invalid, not_found
from tests.providers.anthropic.exchange import (
    Answer,
    Fault,
    FaultPlan,
    Programme,
    Request,
    Shares,
    answer_of,
)
from tests.providers.anthropic.messages import Answering, Assistant, judge
from tests.providers.anthropic.service import Desk, Service, error_of
from tests.providers.loopback import LoopbackFake, LoopbackServer


class Advance(msgspec.Struct, frozen=True):
    """What POST /_clock takes."""

    advance_s: float


PROGRAMME: Final = msgspec.json.Decoder(Programme)  # made before any thread, see decode_json
ADVANCE: Final = msgspec.json.Decoder(Advance)


class Control:
    """The test's side of the fake; no part of the API, and needs no key."""

    def __init__(self, service: Service, plan: FaultPlan) -> None:
        self._service = service
        self._plan = plan

    def answer(self, request: Request) -> Answer:
        """Do what a test asks."""
        try:
            return self._done(request)
        except msgspec.DecodeError as error:
            return error_of(invalid(f"{request.path}: {error}"))
        except ApiError as error:
            return error_of(error)

    def _done(self, request: Request) -> Answer:
        match request.method, request.path:
            case "GET", "/_bill":
                bill = self._service.bill(settle=request.query.get("settle") != "false")
                is_short = request.query.get("lines") == "false"
                return answer_of(msgspec.structs.replace(bill, lines=()) if is_short else bill)
            case "POST", "/_faults":
                self._programme(PROGRAMME.decode(request.body))
            case "POST", "/_clock":
                passed = ADVANCE.decode(request.body)
                self._service.advance(timedelta(seconds=passed.advance_s))
            case "POST", "/_end":
                self._service.end_batches()
            case _:
                raise not_found(f"{request.method} {request.path}")
        return answer_of({})

    def _programme(self, programme: Programme) -> None:
        if programme.clear:
            self._plan.clear()
        self._plan.inject(programme.faults, shares=programme.shares)


_CHUNK: Final = 1 << 16
_BATCHES: Final = "/v1/messages/batches"
_TOO_LARGE: Final = ApiError("request_too_large", "Request exceeds the maximum size")


class Answers(Protocol):
    """Whatever answers requests."""

    def answer(self, request: Request) -> Answer:
        """Answer a request."""
        ...


class Handler(BaseHTTPRequestHandler):
    """One connection; `bound` makes a class of it that knows whom to ask."""

    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: Answers
    control: Answers
    limits: Limits
    plan: FaultPlan

    def serve(self) -> None:
        """Answer one request."""
        n_bytes = int(self.headers.get("content-length", "0"))
        body = self._read(n_bytes)
        if body is None:
            self._send(error_of(_TOO_LARGE))
            return
        if len(body) < n_bytes:
            self._cut()  # the client went away as it sent: it has asked for nothing
            return
        if self.path == "/_connections":
            self._send(answer_of({"n_others": self.server.n_open - 1}))
            return
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query))
        request = Request(self.command, unquote(url.path), query, headers, body)
        answers = self.control if url.path.startswith("/_") else self.api
        self._send(answers.answer(request))

    do_GET = serve  # noqa: N815 # the names that BaseHTTPRequestHandler looks for
    do_POST = serve  # noqa: N815 # as do_GET

    def log_message(self, *_args: object) -> None:
        """Say nothing: headers hold keys, and a test's output is its own."""

    def _read(self, n_left: int) -> bytes | None:
        """Return the body; one that is too large is read to its end, and not kept."""
        is_batch = self.path == _BATCHES
        most = self.limits.n_batch_bytes if is_batch else self.limits.n_message_bytes
        if n_left <= most:
            return self.rfile.read(n_left)
        while n_left > 0:
            n_left -= len(self.rfile.read(min(n_left, _CHUNK))) or n_left
        return None

    def _send(self, answer: Answer) -> None:
        fault = answer.fault
        if fault is not None and fault.kind in {"cut_before", "cut_after"}:
            self._cut()
            return
        if fault is not None and fault.kind == "late":
            self.plan.wait(fault.delay_s)
        try:
            if answer.results is None:
                self._send_body(answer)
            else:
                self._send_results(answer, answer.results)
        except ConnectionError:
            self.close_connection = True

    def _send_head(self, answer: Answer, **framing: str) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, **framing}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _send_body(self, answer: Answer) -> None:
        is_cut = answer.fault is not None and answer.fault.kind == "cut_half"
        self._send_head(answer, content_length=str(len(answer.body)))
        self.wfile.write(answer.body[: len(answer.body) // 2] if is_cut else answer.body)
        if is_cut:
            self._cut()

    def _send_results(self, answer: Answer, results: Path) -> None:
        """Send results in chunks, as many as the fault lets through."""
        n_bytes, fault = results.stat().st_size, answer.fault
        with results.open("rb") as file:
            n_first = n_bytes if fault is None else _n_first(file, n_bytes, fault)
            self._send_head(answer, transfer_encoding="chunked")
            self._send_chunks(file, n_first)
            if fault is not None and fault.kind == "cut_half":
                self._cut()
                return
        self.wfile.write(b"0\r\n\r\n")

    def _send_chunks(self, file: IO[bytes], n_left: int) -> None:
        while n_left > 0:
            chunk = file.read(min(n_left, _CHUNK))
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            n_left -= len(chunk)

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # the client may have gone first
            self.connection.shutdown(socket.SHUT_RDWR)


def _n_first(file: IO[bytes], n_bytes: int, fault: Fault) -> int:
    """Return how many bytes of the results come first."""
    match fault.kind:
        case "cut_half":
            return n_bytes // 2
        case "cut_quietly":
            n_lines_end = file.read(n_bytes // 2).rfind(b"\n") + 1
            file.seek(0)
            return n_lines_end
        case _:
            return n_bytes


def bound(*, api: Answers, control: Answers, limits: Limits, plan: FaultPlan) -> type[Handler]:
    """Return a handler that asks these."""
    names = {"api": api, "control": control, "limits": limits, "plan": plan}
    return type("BoundHandler", (Handler,), names)


class FakeAnthropic(LoopbackFake):
    """The fake, in this process, as long as its block lasts."""

    def __init__(
        self,
        *,
        answering: Answering = judge,
        pace: Pace | None = None,
        limits: Limits | None = None,
        api_key: str | None = None,
        now: Callable[[], datetime] = real_time,
        folder: Path | None = None,
    ) -> None:
        """Make a fake.

        Args:
            answering: what the models reply.
            pace: when batches end; by default at the second retrieval.
            limits: by default those of the API.
            api_key: the one key that is taken; any, if None.
            now: the clock, which `advance` moves on.
            folder: where requests and results lie; a temporary one, if None.
        """
        self._exits = ExitStack()
        self._clock, self._plan = Clock(now), FaultPlan()
        self._limits = limits or Limits()
        books = Books()
        self._service = Service(
            batches=Batches(
                folder or Path(self._exits.enter_context(TemporaryDirectory(prefix="anthropic-"))),
                limits=self._limits,
                pace=pace or Pace(),
                now=self._clock.now,
            ),
            desk=Desk(Assistant(answering), self._plan, books, self._clock),
            books=books,
            plan=self._plan,
            clock=self._clock,
            rates=Rates(self._limits.n_requests_per_minute, now=self._clock.now),
            api_key=api_key,
        )
        control = Control(self._service, self._plan)
        super().__init__(
            bound(api=self._service, control=control, limits=self._limits, plan=self._plan)
        )

    def __enter__(self) -> Self:
        """Listen on a port of loopback that is free."""
        super().__enter__()
        self._service.base_url = self.url
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the port, let go of answers that wait, and remove a temporary folder."""
        super().__exit__(kind, error, traceback)
        self._exits.close()

    def let_go(self) -> None:
        """Let go of answers that wait."""
        self._plan.clear()

    @property
    def url(self) -> str:
        """The base_url for the SDK."""
        return f"http://127.0.0.1:{self.port}"

    def bill(self, *, settle: bool = True) -> Bill:
        """Return the books; with `settle`, after all batches that were accepted have ended."""
        return self._service.bill(settle=settle)

    def inject(self, *faults: Fault, shares: Shares | None = None) -> None:
        """Let things go wrong."""
        self._plan.inject(faults, shares=shares)

    def clear(self) -> None:
        """Let everything go well again, and late answers come."""
        self._plan.clear()

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self._service.advance(by)

    def end_batches(self) -> None:
        """Let every batch end now that has not."""
        self._service.end_batches()
