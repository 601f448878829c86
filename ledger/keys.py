"""The keys by which a fact is appended once: what identifies it within its type and stream."""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

KEY_BYTES: Final = 10  # the end of an event's id
_encode_key: Final = msgspec.json.Encoder().encode


def key_of(event_id: bytes) -> bytes:
    """Return the idempotency key in an event id: the same for the same fact."""
    return event_id[-KEY_BYTES:]


def key_named(stream: str, type_: str, natural_key: Iterable[str]) -> bytes:
    """Return the idempotency key of a fact, by what identifies it within its type and stream."""
    return hashlib.sha256(_encode_key([stream, type_, *natural_key])).digest()[:KEY_BYTES]
