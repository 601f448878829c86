"""Names by content: canonical JSON, SHA-256, and the keys by which a fact is appended once."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NewType, TypeAlias

Digest = NewType("Digest", str)
"""64 lowercase hexadecimal characters: SHA-256 of what is named."""

EntrantId = NewType("EntrantId", str)
PromptId = NewType("PromptId", str)
Dimension = NewType("Dimension", str)
JudgeId = NewType("JudgeId", str)
StreamId = NewType("StreamId", str)

Json: TypeAlias = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"] | None

Fields: TypeAlias = dict[str, Json]
"""A JSON object."""


def canonical_json(value: Json) -> bytes:
    """Encode a JSON value in its one canonical form: sorted keys, no spaces, UTF-8.

    Raises:
        ValueError: A number is NaN or infinite, which JSON cannot express.
    """
    return _encode(value).encode()


_encode: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def digest_of(value: Json) -> Digest:
    """Return the SHA-256 of a JSON value's canonical form."""
    return digest_of_bytes(canonical_json(value))


def drawn_by(content: Json) -> int:
    """Draw 64 random bits by content, the same for ever: from the digest's first 16 digits."""
    return int(digest_of(content)[:16], 16)


def digest_of_bytes(content: bytes) -> Digest:
    """Return the SHA-256 of bytes as 64 hexadecimal characters."""
    return Digest(hashlib.sha256(content).hexdigest())


_KEY_BYTES: Final = 10  # the end of an event's id


def key_of(event_id: bytes) -> bytes:
    """Return the idempotency key in an event id: the same for the same fact."""
    return event_id[-_KEY_BYTES:]


def key_named(stream: str, type_: str, natural_key: Iterable[str]) -> bytes:
    """Return the idempotency key of a fact, by what identifies it within its type and stream."""
    name = canonical_json([stream, type_, *natural_key])
    return hashlib.sha256(name).digest()[:_KEY_BYTES]
