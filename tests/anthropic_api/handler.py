"""HTTP: reads a request, sends its answer, and cuts the connection where a fault has it so."""

import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.anthropic_api.errors import ApiError
from tests.anthropic_api.exchange import Answer, Request, answer_of
from tests.anthropic_api.faults import Fault, FaultPlan
from tests.anthropic_api.limits import Limits
from tests.anthropic_api.service import error_of
from tests.loopback import LoopbackServer

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
    do_DELETE = serve  # noqa: N815 # as do_GET

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
            if fault is not None and fault.kind == "pause_half":
                self.plan.wait(fault.delay_s)
                self._send_chunks(file, n_bytes - n_first)
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
    n_share = int(n_bytes * fault.at)
    match fault.kind:
        case "cut_half" | "pause_half":
            return n_share
        case "cut_quietly":
            n_lines_end = file.read(n_share).rfind(b"\n") + 1
            file.seek(0)
            return n_lines_end
        case _:
            return n_bytes


def bound(*, api: Answers, control: Answers, limits: Limits, plan: FaultPlan) -> type[Handler]:
    """Return a handler that asks these."""
    names = {"api": api, "control": control, "limits": limits, "plan": plan}
    return type("BoundHandler", (Handler,), names)
