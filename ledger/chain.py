"""The hash chain and its head.

Each event has a leaf, the hash of its content, and a link, the hash of the whole history up to it.
A leaf omits position and version, so an event keeps its identity when ledgers are merged. It hashes
the payload's digest rather than the payload: so a payload can be redacted, and the tombstone in its
place, which begins with that digest, has the same leaf.
"""

import re
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple, Self

from ledger.errors import NotAHead
from ledger.identity import Digest

GENESIS: Final = bytes(32)

_ENTRY: Final = b"tourney-event-1\n"
_length: Final = Struct(">Q").pack
_LEAF, _LINK = b"\x00", b"\x02"  # RFC 6962, section 2.1, keeps leaf hashes apart from others so


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

    Every field is preceded by its length, so different contents never hash the same bytes; the
    payload's digest always has the same length.

    Args:
        entry: A `LeafContent`, or its fields.
    """
    event_id, stream, type_, schema_version, recorded_us, data = entry
    fields = (event_id, stream, type_, b"%d" % schema_version, b"%d" % recorded_us)
    framed = b"".join([_length(len(field)) + field for field in fields])
    return sha256(_LEAF + _ENTRY + framed + payload_digest(data)).digest()


def link_hash(previous: bytes, leaf: bytes) -> bytes:
    """Return the chain's value after an event, from the value before it and the event's leaf."""
    return sha256(_LINK + previous + leaf).digest()


_TOMBSTONE: Final = re.compile(
    rb'{"redacted":"(?P<digest>[0-9a-f]{64})",(?:"schema_version":(?P<version>[0-9]{1,9}),)?'
)
"""How a tombstone begins. No payload begins so: no event's first field is named `redacted`."""


def tombstone(payload: bytes, remaining: bytes, version: int | None = None) -> bytes:
    """Return what stands in a redacted payload's place: its digest, then the fields that remain.

    Args:
        payload: A JSON object, as it was recorded.
        remaining: The same event without its texts, as a JSON object of at least one field.
        version: Of the fields that remain, if the payload was recorded in an older one.
    """
    shape = b"" if version is None else b'"schema_version":%d,' % version
    return b'{"redacted":"%b",%b%b' % (sha256(payload).hexdigest().encode(), shape, remaining[1:])


def is_tombstone(data: bytes) -> bool:
    """Say whether stored data stands in a redacted payload's place."""
    return _TOMBSTONE.match(data) is not None


def remaining_payload(data: bytes, schema_version: int) -> tuple[bytes, int]:
    """Return stored data without that with which a tombstone begins, and its version.

    Args:
        data: As stored.
        schema_version: In which the event was recorded.
    """
    match = _TOMBSTONE.match(data)
    if match is None:
        return data, schema_version
    return b"{" + data[match.end() :], int(match["version"] or schema_version)


def payload_digest(data: bytes) -> bytes:
    """Return the SHA-256 of an event's payload as it was recorded, redacted since or not."""
    match = _TOMBSTONE.match(data)
    return sha256(data).digest() if match is None else bytes.fromhex(match["digest"].decode())


_SPELLING: Final = re.compile(r"\b([0-9a-f]{64})@([0-9]{1,18})\b")


def find_heads(text: str) -> tuple["Head", ...]:
    """Return the head hashes that a text contains, each once."""
    found = dict.fromkeys(match[0] for match in _SPELLING.finditer(text))
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
