"""Post requests to a server with OpenAI's API, with little work on each of them.

The SDK validates what is sent and wraps what comes back, and the HTTP client below it makes an
object of each part of both. The standard library's client takes a quarter of that client's
processor time alone. The SDK's headers, settings and errors are used all the same.
"""

import select
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from math import inf
from time import monotonic
from typing import Final, TypeAlias
from urllib.request import getproxies, proxy_bypass

import httpx2
import msgspec
import openai

from commands.backends.remote.redacting_client import redacted_response
from ledger.identity import Json

Post: TypeAlias = Callable[[str, Mapping[str, Json]], bytes]
"""Sends a body once, to a path below the server's base_url, and returns the answer's body.

It raises openai.APIConnectionError if no answer came, and openai.APIStatusError if the server
refused or failed. Threads may share it.
"""

_MOST_BYTES: Final = 8_000_000  # of an answer; the longest have some hundred thousand
_PART_BYTES: Final = 1 << 16
_PARTS: Final = 10  # an answer may take so many times as long as a part of it
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_encode: Final = msgspec.json.Encoder().encode  # a tenth of the standard library's time
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
_ERRORS: Final[Mapping[int, type[openai.APIStatusError]]] = {
    HTTPStatus.UNAUTHORIZED: openai.AuthenticationError,
    HTTPStatus.FORBIDDEN: openai.PermissionDeniedError,
    HTTPStatus.NOT_FOUND: openai.NotFoundError,
}


@contextmanager
def posting(client: openai.OpenAI) -> Iterator[Post]:
    """Yield what posts to a client's server, in the client's name."""
    if _is_behind_proxy(client.base_url):  # the SDK knows proxies of all kinds
        yield lambda path, body: client.post(path, body=body, cast_to=httpx2.Response).content
        return
    with closing(_Connections(client)) as connections:
        yield connections.post


def _is_behind_proxy(url: httpx2.URL) -> bool:
    proxies = getproxies()
    return any(proxies.get(each) for each in (url.scheme, "all")) and not proxy_bypass(url.host)


class _OpenConnection(HTTPConnection):
    """Sends head and body of a request together, which spares both sides a packet."""

    _unsent = b""

    def send(self, data: bytes) -> None:  # type: ignore[override]  # nothing else is sent here
        """Keep a part of a request until all of it is there."""
        self._unsent += data

    def flush(self) -> None:
        """Send a request."""
        whole, self._unsent = self._unsent, b""
        super().send(whole)


class _EncryptedConnection(_OpenConnection, HTTPSConnection):
    """The same under TLS."""


class _Connections:
    """Connections to one server, which are kept open between requests."""

    def __init__(self, client: openai.OpenAI) -> None:
        told = {**client.auth_headers, **client.default_headers}
        self._headers = {name: text for name, text in told.items() if isinstance(text, str)}
        self._url, self._timeout = client.base_url, httpx2.Timeout(client.timeout)
        # one for all connections: it takes long to make
        self._tls = httpx2.create_ssl_context() if self._url.scheme == "https" else None
        self._idle: deque[_OpenConnection] = deque()
        self._is_closed = False

    def post(self, path: str, body: Mapping[str, Json]) -> bytes:
        """Send a body and return the answer's, as `Post` says."""
        content = _encode(body)
        target = self._url.raw_path.decode().removesuffix("/") + path
        connection = self._kept() or self._new()
        try:
            connection.request("POST", target, content, self._headers)
            connection.flush()
            answer = connection.getresponse()
            received = self._received(answer)
        except TimeoutError as error:
            connection.close()
            raise openai.APITimeoutError(self._request) from error
        except (OSError, HTTPException, zlib.error) as error:
            connection.close()
            raise openai.APIConnectionError(request=self._request) from error
        self._keep(connection)
        if httpx2.codes.is_success(answer.status):
            return received
        headers = [each for each in answer.getheaders() if each[0].lower() != "content-encoding"]
        refusal = httpx2.Response(
            answer.status, headers=headers, content=received, request=self._request
        )
        raise _error_of(redacted_response(refusal))

    def _received(self, answer: HTTPResponse) -> bytes:
        """Return the body of an answer.

        Raises:
            TimeoutError: It does not end.
            HTTPException: It is longer than any answer.
        """
        ends_at = monotonic() + _PARTS * (self._timeout.read or inf)
        parts, n_left = list[bytes](), _MOST_BYTES
        while part := answer.read1(_PART_BYTES):
            parts.append(part)
            n_left -= len(part)
            if n_left < 0:
                raise HTTPException(f"the answer has more than {_MOST_BYTES:,} bytes")
            if monotonic() > ends_at:
                raise TimeoutError
        answer.close()  # so that the connection can be used again
        if answer.length:
            raise IncompleteRead(b"", answer.length)
        return _decoded(b"".join(parts), answer.getheader("content-encoding", "identity"))

    def close(self) -> None:
        """Close all connections; those in use, once they are not."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _kept(self) -> _OpenConnection | None:
        """Return a connection that is open and not in use; None if there is none."""
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if _is_open(connection):
                    return connection
                connection.close()
        return None

    def _new(self) -> _OpenConnection:
        host, port = self._url.raw_host.decode(), self._url.port or _PORTS[self._url.scheme]
        timeout_s = self._timeout.connect
        connection = (
            _OpenConnection(host, port, timeout=timeout_s)
            if self._tls is None
            else _EncryptedConnection(host, port, timeout=timeout_s, context=self._tls)
        )
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            cause = httpx2.ConnectError(str(error))
            raise openai.APIConnectionError(request=self._request) from cause
        connection.sock.settimeout(self._timeout.read)
        return connection

    def _keep(self, connection: _OpenConnection) -> None:
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)

    @property
    def _request(self) -> httpx2.Request:
        """What errors hold as the request."""
        return httpx2.Request("POST", self._url)


def _decoded(content: bytes, encoding: str) -> bytes:
    """Return content that some servers compress although nobody asked them to.

    Raises:
        HTTPException: It is longer than any answer, or breaks off.
        zlib.error: It is not what it is said to be.
    """
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        return content
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
    whole = decoder.decompress(content, _MOST_BYTES)
    if not decoder.eof:
        raise HTTPException("a compressed answer breaks off, or is too long")
    return whole


def _is_open(connection: _OpenConnection) -> bool:
    """Return whether a connection is open: the server may have closed it since its last answer."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _error_of(response: httpx2.Response) -> openai.APIStatusError:
    """Return the SDK's error for a status."""
    try:
        body = response.json()
    except ValueError:
        body = response.text
    if isinstance(body, list) and body:  # as Google's
        body = body[0]
    data = body.get("error", body) if isinstance(body, dict) else body
    told = data.get("message") if isinstance(data, dict) else None
    if response.has_redirect_location:
        told = f"moved to {response.headers['location']}"
    message = f"Error code: {response.status_code} - {told or body}"
    usual = (
        openai.InternalServerError
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        else openai.APIStatusError
    )
    return _ERRORS.get(response.status_code, usual)(message, response=response, body=data)
