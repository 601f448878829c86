"""Read what servers send: bodies, the wait that a header asks for, errors; and how long to wait."""

import json
from collections.abc import Iterator
from typing import Final, TypeVar

import httpx2
import msgspec

from commands.backends.remote.batch_fields import date_in
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
