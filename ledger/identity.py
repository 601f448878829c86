"""Digests that identify things by content: canonical JSON and SHA-256."""

import hashlib
import json
from collections.abc import Mapping, Sequence
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


def digest_of_bytes(content: bytes) -> Digest:
    """Return the SHA-256 of bytes as 64 hexadecimal characters."""
    return Digest(hashlib.sha256(content).hexdigest())
