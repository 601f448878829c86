"""An HTTP client that no answer can fill or hold for ever, and whose errors show no API key.

Servers may quote the key in an error. It must not show in a message or a traceback.
"""

from collections.abc import Iterator
from contextlib import closing
from math import inf
from time import monotonic
from typing import Any, Final

import httpx2

from commands.settings.api_keys import redacted

_MOST_BYTES: Final = 8_000_000  # of an answer; the longest have some hundred thousand
_PARTS: Final = 10  # an answer may take so many times as long as a part of it
_OF_THE_BODY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class GuardedClient(httpx2.Client):
    """Reads answers up to a limit of bytes and seconds, and redacts keys in errors.

    What is streamed, such as a batch's results, is left to whoever reads it.
    """

    def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        **options: Any,  # noqa: ANN401  # theirs
    ) -> httpx2.Response:
        """Send a request; return the answer.

        Raises:
            httpx2.ReadTimeout: The answer does not end.
            httpx2.RemoteProtocolError: It is longer than any answer.
            httpx2.HTTPError: As the client's own; no answer came.
        """
        response = super().send(request, stream=True, **options)
        if stream and not response.is_error:
            return response
        with closing(response):
            content = _read_within_limits(response)
        return _copy(response, content, redacts=response.is_error)


def _read_within_limits(response: httpx2.Response) -> bytes:
    part_s = response.request.extensions.get("timeout", {}).get("read") or inf
    ends_at = monotonic() + _PARTS * part_s
    content = bytearray()
    for part in response.iter_bytes():
        content += part
        if len(content) > _MOST_BYTES:
            raise httpx2.RemoteProtocolError(f"the answer has more than {_MOST_BYTES:,} bytes")
        if monotonic() > ends_at:
            raise httpx2.ReadTimeout("the answer does not end")
    return bytes(content)


def _copy(response: httpx2.Response, content: bytes, *, redacts: bool) -> httpx2.Response:
    """Return a response with its content, which is no longer compressed."""
    if redacts:  # as latin-1 each byte stays what it is
        content = redacted(content.decode("latin-1")).encode("latin-1")
    return httpx2.Response(
        response.status_code,
        headers=[*_headers(response, redacts=redacts)],
        content=content,
        request=response.request,
        extensions=response.extensions,
    )


def _headers(response: httpx2.Response, *, redacts: bool) -> Iterator[tuple[str, str]]:
    for name, value in response.headers.multi_items():
        if name not in _OF_THE_BODY:
            yield name, redacted(value) if redacts else value
