"""Read what servers send, and no more than can be: bodies, files, times, counts, errors.

What is blank, null or nonsense counts as not told.
"""

import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from time import monotonic
from typing import Any, Final, TypeVar

import httpx2
import msgspec

from commands.settings.api_keys import redacted, without_keys
from ledger.store import utc_now

CONNECT_S: Final = 10.0
TIMEOUT_S: Final = 600.0  # of a request, where no setting says otherwise
FREE_CALL_S: Final = 60.0  # for each part of an answer that costs nothing: it can be asked again
_SHOWN: Final = 30  # bytes of a body that is not JSON, enough to recognize a web page
_LONGEST_KEY: Final = 2_000  # bytes of it in which a key is looked for
_NOT_SENT: Final = (
    *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
    *(httpx2.ProxyError, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError),
)
_MOST: Final = 10**9  # queries of a batch; a greater count is none
_IN_MS: Final = 10**11  # a later time in seconds is one in milliseconds
_GZIP: Final = b"\x1f\x8b"  # no line of JSON begins like that
_Value = TypeVar("_Value")


def decode_json(body: bytes, decoder: msgspec.json.Decoder[_Value]) -> _Value:
    """Decode a JSON body, known keys taken out; a ValidationError says that it is of another type.

    The decoder must be made when its module is imported. msgspec studies a type at its first use;
    if two request threads are first at the same time, it may crash the process (msgspec 0.22).
    """
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(f"not JSON: {_beginning(body)!r}") from error
    return decoder.decode(without_keys(replace_surrogates(text)))


def _beginning(body: bytes) -> bytes:
    return redacted(body[:_LONGEST_KEY].decode("latin-1")).encode("latin-1")[:_SHOWN]


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows and UTF-8 cannot encode, with "?"."""
    return text.encode(errors="replace").decode()


def lines_in(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a streamed file; the last one may be empty, or cut off."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    yield rest


def first_line(error: Exception | Warning) -> str:
    """Return the first line of an error message, without keys."""
    return redacted(str(error).strip().partition("\n")[0])


def retry_after_s(headers: httpx2.Headers) -> float | None:
    """Return the wait that the provider asks for, in seconds; None if it asks for none."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit_s)
        except (KeyError, ValueError):
            continue
    until = date_in(headers, "retry-after")
    if until is None:
        return None
    now = date_in(headers) or utc_now()  # the provider's clock goes before this one
    return max(0.0, (until - now).total_seconds())


def was_not_sent(error: BaseException | None) -> bool:
    """Return whether a request surely did not reach its server."""
    return isinstance(error, _NOT_SENT)


def count_in(told: object, name: str) -> int:
    """Return a count of an object; 0 if it is not told."""
    value = told.get(name) if isinstance(told, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= _MOST else 0


def text_of(told: object) -> str | None:
    """Return a text, such as an id; None if it is not told."""
    return told if isinstance(told, str) and told.strip() else None


def time_of(told: object) -> datetime | None:
    """Return a time, told in seconds or as a date with its zone; None if it is not told."""
    try:
        match told:
            case str():
                moment = datetime.fromisoformat(told)
                return moment.astimezone(UTC) if moment.tzinfo else None
            case int() | float() if told > 0:
                return datetime.fromtimestamp(told / 1000 if told >= _IN_MS else told, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def date_in(headers: httpx2.Headers, name: str = "date") -> datetime | None:
    """Return the time in a header: by default when the server made the answer; None if untold."""
    try:
        moment = parsedate_to_datetime(headers[name])
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (KeyError, ValueError, OverflowError):
        return None


def inflated(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file as it is; if no header said that it is compressed, decompress it.

    Raises:
        zlib.error: It is damaged.
    """
    decompress = None
    for n, chunk in enumerate(chunks):
        if n == 0 and chunk.startswith(_GZIP):
            decompress = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress
        yield chunk if decompress is None else decompress(chunk)


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
