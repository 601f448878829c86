"""An HTTP client that passes on no key which a server's error repeats.

Neither a message nor a traceback, with its locals, can then show one.
"""

from collections.abc import Iterator
from typing import Any, Final

import httpx2

from commands.settings.keys import redacted

_OF_THE_BODY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class QuietClient(httpx2.Client):
    """Takes keys out of the headers and the body of whatever says that a request failed."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401  # theirs
        """Send a request; return the answer."""
        response = super().send(request, **options)
        return quieted(response) if response.is_error else response


def quieted(response: httpx2.Response) -> httpx2.Response:
    """Return an error of a server, whole, without keys."""
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
