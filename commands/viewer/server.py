"""Serve pages on this machine: the standard library's server, with bounds on what it is sent.

One person reads them, so a thread for each connection is enough, and no package is needed. A
connection that is silent for too long is closed, and so is one too many.
"""

import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Final, TypeAlias

from commands.errors import ConfigurationError
from commands.viewer.http_exchange import PageReply, PageRequest, whole_number

Answer: TypeAlias = Callable[[PageRequest], PageReply]
_Connected: TypeAlias = socket.socket | tuple[bytes, socket.socket]

HOST: Final = "127.0.0.1"
_MOST_CONNECTIONS: Final = 64
_SILENT_S: Final = 20.0
_POLL_S: Final = 0.1  # after which Ctrl-C is noticed at the latest
_MOST_BODY: Final = 10_000  # bytes of a form
_ALWAYS: Final = (
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "same-origin"),  # by no-referrer a form would hide where it comes from
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class PageServer(ThreadingHTTPServer):
    """Answers requests of this machine by a function."""

    daemon_threads = True  # a stream of events must not keep the program from ending
    request_queue_size = 32

    def __init__(self, answer: Answer, port: int = 0) -> None:
        """Listen on a port; 0: any that is free.

        Raises:
            ConfigurationError: The port cannot be had.
        """
        self.answer = answer
        self._room = BoundedSemaphore(_MOST_CONNECTIONS)
        try:
            super().__init__((HOST, port), _Connection)
        except OSError as error:
            raise ConfigurationError(
                [f"--port {port}: {error.strerror}; leave it out to take a free one"]
            ) from error

    @property
    def address(self) -> str:
        """Where the pages are."""
        return f"http://{HOST}:{self.server_port}/"

    def process_request(self, request: _Connected, client_address: object) -> None:
        """Answer a connection on a thread of its own, if there is room for one more."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: _Connected, client_address: object) -> None:
        """Answer the requests of a connection, then make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: _Connected, client_address: object) -> None:
        """Print the traceback of a fault, but say nothing of a reader who left."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    """Reads the requests of a connection, and writes what the function answers."""

    protocol_version = "HTTP/1.1"
    timeout = _SILENT_S
    server: PageServer

    def _answer(self) -> None:
        length = self.headers.get("Content-Length", "0")
        n_bytes = whole_number(length)
        if n_bytes is None or n_bytes > _MOST_BODY or "Transfer-Encoding" in self.headers:
            self.send_error(413)
            return
        body = self.rfile.read(n_bytes).decode("utf-8", "replace")
        headers = dict(self.headers.items())
        self._write(self.server.answer(PageRequest.of(self.path, headers, self.command, body)))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815

    def _write(self, reply: PageReply) -> None:
        self.send_response(reply.status)
        for name, value in (("Content-Type", reply.kind), *_ALWAYS, *reply.headers):
            self.send_header(name, value)
        if reply.stream is None:
            self.send_header("Content-Length", str(len(reply.body)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(reply.body)
        for part in reply.stream or ():
            self.wfile.write(part)

    def version_string(self) -> str:
        """Name the program, and no version of anything."""
        return "tourney"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as inherited
        """Keep the terminal quiet."""


def serve_until_interrupted(
    answer: Answer, port: int, token: str, tell: Callable[[str], None]
) -> None:
    """Answer requests until Ctrl-C.

    Args:
        answer: What answers.
        port: Where to listen; 0: any that is free.
        token: What lets the reader in.
        tell: Called with the address, token included.

    Raises:
        ConfigurationError: The port cannot be had.
    """
    with PageServer(answer, port) as server, suppress(KeyboardInterrupt):
        tell(f"{server.address}?token={token}")
        server.serve_forever(_POLL_S)
