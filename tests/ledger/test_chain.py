"""The hash chain's law, pinned: ledgers of today must verify for ever."""

import hashlib

import pytest

from ledger.chain import GENESIS, LeafContent, leaf_hash, link_hash

ENTRY = LeafContent(
    event_id=bytes(range(16)),
    stream=b"main",
    type=b"VerdictReceived",
    schema_version=1,
    recorded_us=1_777_291_200_000_000,
    data=b'{"verdict":"A"}',
)
CHANGED = (
    ENTRY._replace(event_id=bytes(16)),
    ENTRY._replace(stream=b"Main"),
    ENTRY._replace(type=b"verdictReceived"),
    ENTRY._replace(schema_version=2),
    ENTRY._replace(recorded_us=1_777_291_200_000_001),
    ENTRY._replace(data=b'{"verdict":"B"}'),
)


def test_a_leaf_is_the_hash_of_framed_fields() -> None:
    """Somebody who has only this description must be able to check a ledger."""
    fields = (
        (16, bytes(range(16))),
        (4, b"main"),
        (15, b"VerdictReceived"),
        (1, b"1"),
        (16, b"1777291200000000"),
        (15, b'{"verdict":"A"}'),
    )
    framed = b"".join(length.to_bytes(8, "big") + field for length, field in fields)

    leaf = leaf_hash(ENTRY)

    assert leaf == hashlib.sha256(b"\x00tourney-event-1\n" + framed).digest()


def test_a_link_is_the_hash_of_history_and_leaf() -> None:
    """The chain starts at 32 zero bytes and takes in one leaf after the other."""
    leaf = bytes(range(32))

    link = link_hash(GENESIS, leaf)

    assert link == hashlib.sha256(b"\x02" + bytes(32) + leaf).digest()
    assert link_hash(link, leaf) != link


@pytest.mark.parametrize("changed", CHANGED, ids=LeafContent._fields)
def test_a_leaf_covers_every_field(changed: LeafContent) -> None:
    """A field outside the hash could be changed unseen."""
    leaf = leaf_hash(changed)

    assert leaf != leaf_hash(ENTRY)


def test_a_byte_cannot_move_between_fields_unseen() -> None:
    """Fields set side by side without lengths would give two entries one hash."""
    moved = ENTRY._replace(stream=b"mainV", type=b"erdictReceived")

    leaf = leaf_hash(moved)

    assert leaf != leaf_hash(ENTRY)
