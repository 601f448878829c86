"""Shipped evaluations of texts: pairs of sentences, and perplexity of files."""

from pathlib import Path

from commands.evaluating.shipped.listed import Blimp, TextPerplexity
from tests.support.builders.evaluating import made, refusals, write_lines

PAIRS = [
    {"sentence_good": f"{n} cats sleep.", "sentence_bad": f"{n} cats sleeps.", "UID": "agreement"}
    for n in range(40)
]


def test_the_good_sentence_stands_in_either_place(tmp_path: Path) -> None:
    """Who always takes the first is right by chance, and the place follows from the pair."""
    write_lines(tmp_path / "one.jsonl", *PAIRS)
    write_lines(tmp_path / "two.jsonl", *reversed(PAIRS))

    one, two = (made("blimp", Blimp, tmp_path, path=f"{name}.jsonl") for name in ("one", "two"))

    items = [one.get(index) for index in range(40)]
    assert all(sentences[correct].endswith("sleep.") for _, sentences, correct in items)
    assert {prefix for prefix, _, _ in items} == {""}
    assert 10 <= sum(correct for _, _, correct in items) <= 30
    assert items == [two.get(39 - index) for index in range(40)]
    assert one.label(0) == "one.jsonl:1 agreement"


def test_a_pair_of_the_same_sentences_is_refused(tmp_path: Path) -> None:
    """Neither is the good one."""
    write_lines(tmp_path / "one.jsonl", {"sentence_good": "Cats.", "sentence_bad": "Cats."})

    assert refusals("blimp", tmp_path, path="one.jsonl") == (
        "one.jsonl:1: both sentences are the same",
    )


def test_a_folder_is_its_texts_in_the_order_of_their_names(tmp_path: Path) -> None:
    """One document a file; what lies beside them is not read."""
    for name, content in (("b.txt", b"two\r\n"), ("a.txt", "één".encode()), ("c.md", b"no")):
        (tmp_path / name).write_bytes(content)

    texts = made("text-perplexity", TextPerplexity, tmp_path, path=".")

    assert [texts.get(index) for index in range(len(texts))] == ["één", "two\r\n"]
    assert [texts.label(index) for index in range(len(texts))] == ["a.txt", "b.txt"]


def test_a_file_is_one_document_whatever_its_name(tmp_path: Path) -> None:
    """Books are not always called .txt."""
    (tmp_path / "book").write_text("Once.", encoding="utf-8")

    texts = made("text-perplexity", TextPerplexity, tmp_path, path="book")

    assert [texts.get(index) for index in range(len(texts))] == ["Once."]


def test_where_there_is_no_text_is_told(tmp_path: Path) -> None:
    """A wrong path is the commonest fault."""
    (tmp_path / "empty").mkdir()

    for path, why in (("empty", "has no *.txt files"), ("none", "there is no such file")):
        (found,) = refusals("text-perplexity", tmp_path, path=path)
        assert found.startswith(f"{path}: {why}")


def test_what_is_not_utf_8_is_refused_with_the_byte(tmp_path: Path) -> None:
    """A replaced character would be weighed as if somebody had written it."""
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))

    (found,) = refusals("text-perplexity", tmp_path, path="latin.txt")

    assert found.startswith("latin.txt: byte 3 is not UTF-8: ")
