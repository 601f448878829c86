"""Post requests to a server with OpenAI's API, without the SDK's work on each of them.

The SDK validates what is sent and wraps what comes back, which takes twice the processor time of
the request itself. Its headers, settings and errors are used all the same.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Final

import httpx2
import openai

from ledger.identity import Json

_ERRORS: Final[Mapping[int, type[openai.APIStatusError]]] = {
    HTTPStatus.UNAUTHORIZED: openai.AuthenticationError,
    HTTPStatus.FORBIDDEN: openai.PermissionDeniedError,
    HTTPStatus.NOT_FOUND: openai.NotFoundError,
}


class Poster:
    """Posts to one server; each thread has a connection of its own, which is kept open.

    A pool that all threads share looks through all of its connections at each request.
    """

    def __init__(self, connect: Callable[[], httpx2.Client]) -> None:
        """Take what makes a thread's client."""
        self._connect, self._of_thread = connect, threading.local()
        self._clients: list[httpx2.Client] = []

    def post(self, path: str, body: Mapping[str, Json]) -> bytes:
        """Send a request once, and return the body of the answer.

        Raises:
            openai.APIConnectionError: No answer came.
            openai.APIStatusError: The server refused or failed.
        """
        content = json.dumps(body, ensure_ascii=False).encode()
        try:
            response = self._client.post(path, content=content)
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request=error.request) from error
        except httpx2.RequestError as error:
            raise openai.APIConnectionError(request=error.request) from error
        if not response.is_success:
            raise _error_of(response)
        return response.content

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    @property
    def _client(self) -> httpx2.Client:
        client: httpx2.Client | None = getattr(self._of_thread, "client", None)
        if client is None:
            client = self._of_thread.client = self._connect()
            self._clients.append(client)
        return client


@contextmanager
def posting(client: openai.OpenAI) -> Iterator[Poster]:
    """Yield what posts to a client's server, in the client's name."""
    told = {**client.auth_headers, **client.default_headers}
    connect = partial(
        httpx2.Client,
        base_url=client.base_url,
        headers={name: text for name, text in told.items() if isinstance(text, str)},
        timeout=client.timeout,
        verify=httpx2.create_ssl_context(),  # it takes long to make
        follow_redirects=True,
    )
    with closing(Poster(connect)) as poster:
        yield poster


def _error_of(response: httpx2.Response) -> openai.APIStatusError:
    """Return the SDK's error for a status."""
    try:
        body = response.json()
    except ValueError:
        body = response.text
    data = body.get("error", body) if isinstance(body, dict) else body
    told = data.get("message") if isinstance(data, dict) else None
    message = f"Error code: {response.status_code} - {told or body}"
    usual = (
        openai.InternalServerError
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        else openai.APIStatusError
    )
    return _ERRORS.get(response.status_code, usual)(message, response=response, body=data)
