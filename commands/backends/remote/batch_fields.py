"""Read what providers tell of batches. What is blank, null or nonsense counts as not told."""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

_MOST: Final = 10**9  # queries of a batch; a greater count is none
_IN_MS: Final = 10**11  # a later time in seconds is one in milliseconds
_GZIP: Final = b"\x1f\x8b"  # no line of JSON begins like that


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
