"""Serve pages on this machine: requests and replies as values, who has access, and the sockets.

One person reads the pages, so the standard library's server with a thread for each connection is
enough. A connection that is silent for too long is closed, and so is one too many.
"""

import hmac
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

from commands.errors import ConfigurationError

_OWN_NAMES: Final = frozenset({"127.0.0.1", "localhost"})  # a tunnel may give another port
_GETTING: Final = frozenset({"GET", "HEAD"})
_MOST_FIELDS: Final = 40  # of a query or a form
_HTML: Final = "text/html; charset=utf-8"
_ENTER: Final = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tourney</title>
<meta http-equiv="refresh" content="0;url=/"></head><body><a href="/">Go on</a></body></html>
"""


class PageRequest(NamedTuple):
    """A request, as far as pages need it."""

    path: str
    query: Mapping[str, str] = {}
    method: str = "GET"
    host: str = "127.0.0.1"
    cookie: str = ""
    origin: str | None = None  # of the page that sent it, if the browser says so
    site: str | None = None  # Sec-Fetch-Site, likewise
    form: Mapping[str, str] = {}

    @classmethod
    def of(cls, target: str, headers: Mapping[str, str], method: str, body: str) -> "PageRequest":
        """Parse a request's target, headers and body."""
        path, _, query = target.partition("?")
        return cls(
            path,
            _fields(query),
            method,
            headers.get("Host", ""),
            headers.get("Cookie", ""),
            headers.get("Origin"),
            headers.get("Sec-Fetch-Site"),
            _fields(body),
        )


def _fields(encoded: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(encoded, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:  # too many
        return {}


_MOST_DIGITS: Final = 12  # of a number; Python refuses to read thousands


def whole_number(said: str) -> int | None:
    """Return the number that a request names in plain digits; None: it is none, or absurd."""
    is_plain = said.isascii() and said.isdecimal() and len(said) <= _MOST_DIGITS
    return int(said) if is_plain else None


class PageReply(NamedTuple):
    """A reply; a stream goes on until the reader leaves."""

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    kind: str = _HTML
    headers: tuple[tuple[str, str], ...] = ()
    stream: Iterator[bytes] | None = None


def page(source: str, policy: str = "default-src 'none'") -> PageReply:
    """Return a page of HTML, with the policy that says what in it may run."""
    return PageReply(source.encode(), headers=(("Content-Security-Policy", policy),))


def plain(status: HTTPStatus, message: str) -> PageReply:
    """Return a message without a page."""
    return PageReply(f"{message}\n".encode(), status, "text/plain; charset=utf-8")


def moved_to(path: str) -> PageReply:
    """Return a redirection after a form was taken, so that reloading sends nothing again."""
    return PageReply(status=HTTPStatus.SEE_OTHER, headers=(("Location", path),))


@dataclass(frozen=True)
class Access:
    """Who may see the pages: the browser that opened the address with the token.

    Other programs of the machine, and pages of other sites in the same browser, do not know the
    token. The cookie that stands for it is sent with requests from these pages only, and no script
    can read it. A form must bring a second secret, which only these pages hold.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    is_read_only: bool = True

    @property
    def form_token(self) -> str:
        """What a form of these pages brings."""
        return hmac.digest(self.token.encode(), b"form", sha256).hex()

    def refusal(self, request: PageRequest) -> PageReply | None:
        """Return why a request is refused, or the way in; None: it is let in, and asks for more."""
        host = request.host.rpartition(":")[0] or request.host
        if host not in _OWN_NAMES:  # a site whose name was pointed at this machine
            return plain(HTTPStatus.MISDIRECTED_REQUEST, "This is not the host that you named.")
        allowed = _GETTING if self.is_read_only else _GETTING | {"POST"}
        if request.method not in allowed:
            refused = plain(HTTPStatus.METHOD_NOT_ALLOWED, "This method is not allowed.")
            return refused._replace(headers=(("Allow", ", ".join(sorted(allowed))),))
        if request.path == "/" and "token" in request.query:
            return self._enter(request)
        if not self._is_token(_cookie_of(request)):
            return plain(HTTPStatus.FORBIDDEN, "Open the address that tourney printed.")
        if request.method == "POST" and not self._is_own_form(request):
            return plain(HTTPStatus.FORBIDDEN, "This form was not sent from the page.")
        if request.path == "/favicon.ico":
            return PageReply(status=HTTPStatus.NO_CONTENT)
        return None

    def _enter(self, request: PageRequest) -> PageReply:
        """Exchange the token for a cookie, and take it out of the address.

        By a page that goes on by itself, since a browser that came from another site would not send
        the cookie along with a redirection.
        """
        if not self._is_token(request.query["token"]):
            return plain(HTTPStatus.FORBIDDEN, "Open the address that tourney printed.")
        cookie = f"{_cookie_name(request)}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        entered = page(_ENTER)
        return entered._replace(headers=(*entered.headers, ("Set-Cookie", cookie)))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _is_own_form(self, request: PageRequest) -> bool:
        if request.origin not in {None, f"http://{request.host}"}:
            return False
        if request.site not in {None, "same-origin"}:
            return False
        given = request.form.get("form_token", "")
        return hmac.compare_digest(given.encode(), self.form_token.encode())


def _cookie_name(request: PageRequest) -> str:
    """Return a name of this port's own: browsers share cookies among the ports of a machine."""
    return f"tourney-{request.host.rpartition(':')[2]}".replace(".", "-")


def _cookie_of(request: PageRequest) -> str:
    try:
        found = SimpleCookie(request.cookie).get(_cookie_name(request))
    except CookieError:
        return ""
    return found.value if found else ""


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
