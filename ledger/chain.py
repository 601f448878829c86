"""The hash chain and its head.

Each event has a leaf, the hash of its content, and a link, the hash of the whole history up to it.
A leaf omits position and version, so an event keeps its identity when ledgers are merged.
"""

import re
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple, Self

from ledger.errors import NotAHead
from ledger.identity import Digest

GENESIS: Final = bytes(32)

_ENTRY: Final = b"tourney-event-1\n"
_length: Final = Struct(">Q").pack
_LEAF, _LINK = b"\x00", b"\x02"  # RFC 6962, section 2.1, keeps leaf hashes apart from others so
_BEGINNING: Final = _LEAF + _ENTRY


class LeafContent(NamedTuple):
    """The fields of an event that its leaf hashes: bytes as stored, never encoded again."""

    event_id: bytes
    stream: bytes
    type: bytes
    schema_version: int
    recorded_us: int  # microseconds since 1970-01-01 UTC
    data: bytes


def leaf_hash(entry: tuple[bytes, bytes, bytes, int, int, bytes]) -> bytes:
    """Return the SHA-256 of an event's content, 32 bytes.

    Every field is preceded by its length, so different contents never hash the same bytes.

    Args:
        entry: A `LeafContent`, or its fields.
    """
    event_id, stream, type_, schema_version, recorded_us, data = entry
    fields = (
        _BEGINNING,
        _length(len(event_id)),
        event_id,
        _between(stream, type_, schema_version, recorded_us),
        _length(len(data)),
        data,
    )
    return sha256(b"".join(fields)).digest()


def link_hash(previous: bytes, leaf: bytes) -> bytes:
    """Return the chain's value after an event, from the value before it and the event's leaf."""
    return sha256(_LINK + previous + leaf).digest()


@lru_cache(maxsize=16)  # the events of one append have one time, and few kinds
def _between(stream: bytes, type_: bytes, schema_version: int, recorded_us: int) -> bytes:
    """Return the hashed bytes between an event's id and its data."""
    time = b"%d" % recorded_us
    return _framed_kind(stream, type_, schema_version) + _length(len(time)) + time


@lru_cache(maxsize=1024)  # few kinds, many events
def _framed_kind(stream: bytes, type_: bytes, schema_version: int) -> bytes:
    version = b"%d" % schema_version
    return b"".join(_length(len(field)) + field for field in (stream, type_, version))


_SPELLING: Final = re.compile(r"\b([0-9a-f]{64})@([0-9]{1,18})\b")


def find_heads(text: str) -> tuple["Head", ...]:
    """Return the head hashes that a text contains, each once."""
    found = dict.fromkeys(each[0] for each in _SPELLING.finditer(text))
    return tuple(map(Head.parse, found))


class Head(NamedTuple):
    """The last event's position and the chain's value there, written `DIGEST@POSITION`."""

    position: int
    chain: Digest

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a head hash as it is printed.

        Raises:
            NotAHead: The text is not a head hash.
        """
        found = _SPELLING.fullmatch(text.strip())
        if found is None:
            raise NotAHead(text)
        return cls(int(found[2]), Digest(found[1]))

    def __str__(self) -> str:
        """Return the printed form."""
        return f"{self.chain}@{self.position}"
