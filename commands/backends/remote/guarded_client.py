"""An HTTP client that no answer can fill or hold for ever."""

from contextlib import closing
from math import inf
from time import monotonic
from typing import Any, Final

import httpx2

_MOST_BYTES: Final = 8_000_000  # of an answer; the longest have some hundred thousand
_PARTS: Final = 10  # an answer may take so many times as long as a part of it
_OF_THE_BODY: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class GuardedClient(httpx2.Client):
    """Reads answers up to a limit of bytes and seconds.

    What is streamed, such as a batch's results, is left to whoever reads it.
    """

    def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        **options: Any,  # noqa: ANN401  # theirs
    ) -> httpx2.Response:
        """Send a request; return the answer, which is no longer compressed.

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
        headers = response.headers.multi_items()
        return httpx2.Response(
            response.status_code,
            headers=[(name, value) for name, value in headers if name not in _OF_THE_BODY],
            content=content,
            request=response.request,
            extensions=response.extensions,
        )


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
