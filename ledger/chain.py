"""The hash chain: each event's leaf names its content, each link the whole history before it.

A leaf leaves out position and version, so that an event keeps its identity when ledgers merge.
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
    """What of an event is hashed: bytes as stored, never encoded again."""

    event_id: bytes
    stream: bytes
    type: bytes
    schema_version: int
    recorded_us: int  # microseconds since 1970-01-01 UTC
    data: bytes


def leaf_hash(entry: tuple[bytes, bytes, bytes, int, int, bytes]) -> bytes:
    """Return the 32 bytes that name an event's content.

    Every field is preceded by its length, so no two entries share a spelling.

    Args:
        entry: An `LeafContent`, or its fields.
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
    """Return the chain's value after a leaf, from its value before."""
    return sha256(_LINK + previous + leaf).digest()


@lru_cache(maxsize=16)  # the events of one append have one time, and few kinds
def _between(stream: bytes, type_: bytes, schema_version: int, recorded_us: int) -> bytes:
    """Return what lies between an event's id and its data."""
    time = b"%d" % recorded_us
    return _framed_kind(stream, type_, schema_version) + _length(len(time)) + time


@lru_cache(maxsize=1024)  # few kinds, many events
def _framed_kind(stream: bytes, type_: bytes, schema_version: int) -> bytes:
    version = b"%d" % schema_version
    return b"".join(_length(len(field)) + field for field in (stream, type_, version))


_SPELLING: Final = re.compile(r"\b([0-9a-f]{64})@([0-9]{1,18})\b")


def find_heads(text: str) -> tuple["Head", ...]:
    """Return the heads that stand in a text, each once."""
    found = dict.fromkeys(each[0] for each in _SPELLING.finditer(text))
    return tuple(map(Head.parse, found))


class Head(NamedTuple):
    """The last event's place, and the chain's value there; spelt `DIGEST@POSITION`."""

    position: int
    chain: Digest

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a head as it is printed.

        Raises:
            NotAHead: It is spelt otherwise.
        """
        found = _SPELLING.fullmatch(text.strip())
        if found is None:
            raise NotAHead(text)
        return cls(int(found[2]), Digest(found[1]))

    def __str__(self) -> str:
        """Return the printed form."""
        return f"{self.chain}@{self.position}"
