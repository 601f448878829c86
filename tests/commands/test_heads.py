"""Checkpoints that were noted somewhere."""

import json
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.runs.verify import noted_heads
from ledger.chain import Head
from ledger.errors import NotAHead
from tests.builders import key

FIRST, SECOND = Head(12, key("first")), Head(2183, key("second"))


def noted(folder: Path, text: str) -> tuple[Head, ...]:
    """Write a file and return the heads in it."""
    file = folder / "note.txt"
    file.write_text(text, encoding="utf-8")
    return noted_heads(str(file))


def test_a_head_that_is_spelt_out_is_read(tmp_path: Path) -> None:
    """Copied from a message onto a command line, with the blank that came along."""
    assert noted_heads(str(FIRST)) == (FIRST,)
    assert noted_heads(f" {FIRST}\n") == (FIRST,)
    assert list(tmp_path.iterdir()) == []


def test_every_head_in_a_file_is_read_once(tmp_path: Path) -> None:
    """A log of checkpoints repeats what did not change between two."""
    text = f"Monday: {FIRST}\nTuesday: {FIRST}, then\n({SECOND}).\n"

    assert noted(tmp_path, text) == (FIRST, SECOND)


def test_a_manifest_has_its_head_in_it(tmp_path: Path) -> None:
    """A run's folder that was handed on proves the ledger that it came from."""
    fields = {"head": FIRST.chain, "as_of": 12, "checkpoint": str(FIRST)}

    assert noted(tmp_path, json.dumps(fields)) == (FIRST,)


def test_bytes_that_are_no_text_do_not_hide_a_head(tmp_path: Path) -> None:
    """A report in another encoding, or a mail with an attachment."""
    file = tmp_path / "mail"
    file.write_bytes(b"\xff\xfe caf\xe9 " + str(FIRST).encode() + b" \x00")

    assert noted_heads(str(file)) == (FIRST,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing of the kind",
        FIRST.chain,
        f"{FIRST.chain}@",
        f"{FIRST.chain[1:]}@12",
        f"a{FIRST}",
        f"{FIRST.chain.upper()}@12",
        f"{FIRST.chain}@1234567890123456789",
    ],
)
def test_a_file_without_a_head_is_refused(tmp_path: Path, text: str) -> None:
    """Compared with nothing, any ledger would pass."""
    with pytest.raises(ConfigurationError, match=r"note.txt: it holds no head hash"):
        noted(tmp_path, text)


@pytest.mark.parametrize("name", ["", "note.txt", "deadbeef@3", "."])
def test_neither_a_file_nor_a_head_is_refused(name: str) -> None:
    """A mistyped file name is told as what it is."""
    with pytest.raises(
        NotAHead, match="is not a head hash: expected 64 hexadecimal digits, @ and a position"
    ):
        noted_heads(name)


def test_a_word_too_long_for_a_file_name_is_refused() -> None:
    """Four checkpoints pasted as one word are no file, and no reason for a traceback."""
    with pytest.raises(NotAHead):
        noted_heads(str(FIRST) * 4)
