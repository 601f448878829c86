"""The hash chain's law and the head that is noted elsewhere: ledgers verify for ever."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.chain import GENESIS, Head, LeafContent, find_heads, leaf_hash, link_hash
from ledger.errors import NotAHead
from ledger.identity import Digest
from tests.support.builders.events import key

ENTRY = LeafContent(
    event_id=bytes(range(16)),
    stream=b"main",
    type=b"VerdictReceived",
    schema_version=1,
    recorded_us=1_777_291_200_000_000,
    data=b'{"verdict":"A"}',
)


def test_a_leaf_is_the_hash_of_framed_fields() -> None:
    """Somebody who has only this description must be able to check a ledger."""
    fields = (
        (16, bytes(range(16))),
        (4, b"main"),
        (15, b"VerdictReceived"),
        (1, b"1"),
        (16, b"1777291200000000"),
    )
    framed = b"".join(length.to_bytes(8, "big") + field for length, field in fields)
    payload = hashlib.sha256(b'{"verdict":"A"}').digest()

    leaf = leaf_hash(ENTRY)

    assert leaf == hashlib.sha256(b"\x00tourney-event-1\n" + framed + payload).digest()


def test_a_link_is_the_hash_of_history_and_leaf() -> None:
    """The chain starts at 32 zero bytes and takes in one leaf after the other."""
    leaf = bytes(range(32))

    link = link_hash(GENESIS, leaf)

    assert link == hashlib.sha256(b"\x02" + bytes(32) + leaf).digest()
    assert link_hash(link, leaf) != link


hexadecimal = st.text("0123456789abcdef", min_size=64, max_size=64).map(Digest)


@given(position=st.integers(min_value=0, max_value=10**18 - 1), chain=hexadecimal)
def test_a_head_is_read_as_it_was_printed(position: int, chain: Digest) -> None:
    """It is noted on paper or in a paper, and compared a year later."""
    head = Head(position, chain)

    assert Head.parse(f" {head}\n") == head


def test_a_head_is_spelt_as_digest_and_position() -> None:
    """Pinned: printed heads stand in other people's files."""
    assert str(Head(3, key("link"))) == f"{key('link')}@3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@3",
        "3",
        key("link"),
        f"{key('link')}@",
        f"{key('link')}@-3",
        f"{key('link')}@3.0",
        f"{key('link')} @3",
        f"{key('link')[1:]}@3",
        f"0{key('link')}@3",
        f"{key('link').upper()}@3",
        f"{key('link')}@\N{ARABIC-INDIC DIGIT THREE}",
        f"{key('link')}@{'9' * 5_000}",
    ],
    ids=range(13),
)
def test_what_is_no_head_is_refused(text: str) -> None:
    """Half a digest would match half of all forgeries: nothing is guessed."""
    with pytest.raises(
        NotAHead, match="is not a head hash: expected 64 hexadecimal digits, @ and a posi"
    ) as (caught):
        Head.parse(text)

    assert caught.value.text == text
    assert len(str(caught.value)) < 250


def test_heads_are_found_in_a_text_each_once() -> None:
    """Whoever noted them wrote other words around them, and some of them twice."""
    first, second = Head(3, key("link")), Head(12, key("other"))

    assert find_heads(f"{first} on Monday, {second}; {first} again") == (first, second)
    assert find_heads(f"{key('link')} alone, @3 alone") == ()
