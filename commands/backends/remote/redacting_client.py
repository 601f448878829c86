"""An HTTP client that redacts API keys in error responses.

Servers may quote the key in an error. It must not show in a message or a traceback.
"""

from collections.abc import Iterator
from typing import Any, Final

import httpx2

from commands.settings.api_keys import redacted

_OF_THE_BODY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class RedactingClient(httpx2.Client):
    """Redacts keys in the headers and the body of error responses."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401  # theirs
        """Send a request; return the answer."""
        response = super().send(request, **options)
        return redacted_response(response) if response.is_error else response


def redacted_response(response: httpx2.Response) -> httpx2.Response:
    """Return an error response with all keys redacted."""
    body = response.read().decode("latin-1")  # each byte stays what it is
    return httpx2.Response(
        response.status_code,
        headers=[*_headers(response)],
        content=redacted(body).encode("latin-1"),
        request=response.request,
        extensions=response.extensions,
    )


def _headers(response: httpx2.Response) -> Iterator[tuple[str, str]]:
    for name, value in response.headers.multi_items():
        if name not in _OF_THE_BODY:
            yield name, redacted(value)
