"""A head as it is noted elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.chain import Head
from ledger.errors import NotAHead
from ledger.identity import Digest
from tests.builders import key

hexadecimal = st.text("0123456789abcdef", min_size=64, max_size=64).map(Digest)


@given(position=st.integers(min_value=0, max_value=10**18 - 1), chain=hexadecimal)
def test_a_head_is_read_as_it_was_printed(position: int, chain: Digest) -> None:
    """It is noted on paper or in a paper, and compared a year later."""
    head = Head(position, chain)

    assert Head.parse(str(head)) == head


def test_a_head_is_spelt_as_digest_and_position() -> None:
    """Pinned: printed heads stand in other people's files."""
    assert str(Head(3, key("link"))) == f"{key('link')}@3"


def test_space_around_a_head_is_no_part_of_it() -> None:
    """It is often read from a file that ends with a line break."""
    assert Head.parse(f" {key('link')}@3\n") == (3, key("link"))


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
