"""The hash chain: each event's leaf names its content, each link the whole history before it.

A leaf leaves out position and version, so that an event keeps its identity when ledgers merge.
"""

import hashlib
from typing import Final, NamedTuple

GENESIS: Final = bytes(32)

TEXT_ERRORS: Final = "surrogateescape"  # text that is no UTF-8 was tampered with; keep its bytes

_ENTRY: Final = b"tourney-event-1\n"
_LEAF, _LINK = b"\x00", b"\x02"  # RFC 6962, section 2.1, keeps leaf hashes apart from others so


class Entry(NamedTuple):
    """What of an event is hashed: bytes as stored, never encoded again."""

    event_id: bytes
    stream: str
    type: str
    schema_version: int
    recorded_us: int  # microseconds since 1970-01-01 UTC
    data: bytes


def leaf_hash(entry: Entry) -> bytes:
    """Return the 32 bytes that name an event's content.

    Every field is preceded by its length, so no two entries share a spelling.
    """
    fields = (
        entry.event_id,
        entry.stream.encode(errors=TEXT_ERRORS),
        entry.type.encode(errors=TEXT_ERRORS),
        b"%d" % entry.schema_version,
        b"%d" % entry.recorded_us,
        entry.data,
    )
    framed = b"".join(len(field).to_bytes(8, "big") + field for field in fields)
    return hashlib.sha256(_LEAF + _ENTRY + framed).digest()


def link_hash(previous: bytes, leaf: bytes) -> bytes:
    """Return the chain's value after a leaf, from its value before."""
    return hashlib.sha256(_LINK + previous + leaf).digest()
