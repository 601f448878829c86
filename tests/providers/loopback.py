"""Servers on loopback for fakes, in this process."""

import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler
from threading import Lock, Thread
from typing import Any, Final, Self

TOO_LATE: Final = "x-too-late"  # a header: whoever is `impatient` has not waited for the answer


class LoopbackServer(ThreadingHTTPServer):
    """Takes many connections at once, a thread for each, and waits for none when it is closed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseRequestHandler]) -> None:
        """Take an address, and what handles a connection."""
        super().__init__(address, handler)
        self._lock = Lock()
        self.n_open = 0  # connections; all that were begun before the one that asks are counted

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # theirs
        """Begin with a connection."""
        with self._lock:
            self.n_open += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as above
        """End a connection."""
        super().shutdown_request(request)
        with self._lock:
            self.n_open -= 1

    def handle_error(self, request: object, client_address: object) -> None:
        """Tell of the fake's own errors only, not that a client went away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed on


class Handler(BaseHTTPRequestHandler):
    """One connection to a fake."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def serve(self) -> None:
        """Answer a request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer a request."""
        self.serve()

    do_POST = do_HEAD = do_GET  # noqa: N815  # theirs

    def log_message(self, *_args: object) -> None:
        """Say nothing: headers hold keys, and a test's output is its own."""

    def received(self) -> bytes:
        """Read the body of a request; it is shorter than it should be if the client went away."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    @property
    def token(self) -> str:
        """The key that a client of OpenAI's API sends."""
        return str(self.headers.get("authorization", "")).removeprefix("Bearer ")

    def send(
        self, status: int, body: bytes, headers: Mapping[str, str], *, share: float = 1.0
    ) -> None:
        """Send an answer, or the first part of one."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        with suppress(ConnectionError):  # the client may have gone first
            self.end_headers()
            self.wfile.write(body[: int(len(body) * share)])

    def cut(self) -> None:
        """End the connection."""
        self.close_connection = True
        with suppress(OSError):  # likewise
            self.connection.shutdown(socket.SHUT_RDWR)


_POLL_S: Final = 0.002  # how long a test waits until its fake has ended


class LoopbackFake:
    """A fake of a server, in this process, as long as its block lasts."""

    def __init__(self, handler: type[BaseRequestHandler], **bound: object) -> None:
        """Take what handles a connection, and what its handlers know."""
        self.handler = type(f"Bound{handler.__name__}", (handler,), bound)

    def __enter__(self) -> Self:
        """Listen on a port of loopback that is free."""
        self._server = LoopbackServer(("127.0.0.1", 0), self.handler)
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of answers that wait, and close the port."""
        self.let_go()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def let_go(self) -> None:
        """Let go of answers that wait."""

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """The base_url for a client of OpenAI's API."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def n_open(self) -> int:
        """Connections that are open."""
        return self._server.n_open
