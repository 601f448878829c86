"""The server itself, over a socket of this machine."""

from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from http.client import HTTPConnection
from threading import BoundedSemaphore, Thread
from typing import NamedTuple

import pytest

from commands.errors import ConfigurationError
from commands.viewer.server import PageReply, PageRequest, PageServer, page


def answer(request: PageRequest) -> PageReply:
    """Answer with what was asked, or with a stream."""
    if request.path == "/events":
        return PageReply(kind="text/event-stream", stream=iter([b"data: 1\n\n", b"data: 2\n\n"]))
    return page(f"{request.method} {request.path} {dict(request.form)}")


@pytest.fixture
def server() -> Iterator[PageServer]:
    """Give a server that answers on a thread."""
    with PageServer(answer) as running:
        thread = Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


class Heard(NamedTuple):
    """A response, read to its end."""

    status: int
    headers: Message
    body: bytes


def ask(server: PageServer, path: str, method: str = "GET", body: bytes = b"") -> Heard:
    """Send a request on a connection of its own, and return the response."""
    with closing(HTTPConnection("127.0.0.1", server.server_port)) as connection:
        connection.request(method, path, body)
        response = connection.getresponse()
        return Heard(response.status, response.headers, response.read())


def test_a_page_comes_with_its_policy_and_is_kept_nowhere(server: PageServer) -> None:
    """A browser is told what may run, and to store nothing."""
    found = ask(server, "/battles?page=2")

    assert found.body == b"GET /battles {}"
    assert found.status == 200
    assert found.headers["Content-Security-Policy"] == "default-src 'none'"
    assert found.headers["Cache-Control"] == "no-store"
    assert found.headers["Referrer-Policy"] == "same-origin"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Server"] == "tourney"
    assert ask(server, "/", "HEAD").body == b""


def test_one_connection_serves_several_requests(server: PageServer) -> None:
    """A browser keeps its connections open."""
    bodies = []

    with closing(HTTPConnection("127.0.0.1", server.server_port)) as connection:
        for path in ("/one", "/two"):
            connection.request("GET", path)
            bodies.append(connection.getresponse().read())

    assert bodies == [b"GET /one {}", b"GET /two {}"]


def test_events_are_written_as_they_come(server: PageServer) -> None:
    """A stream has no length: it ends when the connection does."""
    found = ask(server, "/events")

    assert found.headers["Content-Type"] == "text/event-stream"
    assert found.body == b"data: 1\n\ndata: 2\n\n"


def test_a_form_is_read_up_to_a_bound(server: PageServer) -> None:
    """Nobody can fill the memory with one."""
    assert ask(server, "/vote", "POST", b"vote=a").body == b"POST /vote {'vote': 'a'}"
    assert ask(server, "/vote", "POST", b"x" * 10_001).status == 413


@pytest.mark.parametrize("length", ["9" * 5_000, "-1", "x", ""], ids=["absurd", "minus", "x", "no"])
def test_a_length_that_is_none_is_refused_without_a_word_on_the_terminal(
    server: PageServer, capfd: pytest.CaptureFixture[str], length: str
) -> None:
    """Python reads no number of thousands of digits, and anybody may send one."""
    with closing(HTTPConnection("127.0.0.1", server.server_port)) as connection:
        connection.putrequest("POST", "/vote")
        connection.putheader("Content-Length", length)
        connection.endheaders()

        assert connection.getresponse().status == 413

    assert capfd.readouterr().err == ""


def test_a_connection_too_many_is_closed(server: PageServer) -> None:
    """However many are opened, there are so many threads."""
    server._room = BoundedSemaphore(1)

    with closing(HTTPConnection("127.0.0.1", server.server_port)) as idle:
        idle.request("GET", "/")
        idle.getresponse().read()

        with pytest.raises(ConnectionError):
            ask(server, "/")


def test_a_port_that_is_taken_is_told(server: PageServer) -> None:
    """The remedy is in the message."""
    with pytest.raises(ConfigurationError, match=f"--port {server.server_port}: .*leave it out"):
        PageServer(answer, server.server_port)
