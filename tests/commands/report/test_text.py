"""Texts and numbers as people are to see them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.report.text import (
    Piece,
    decimal,
    interval,
    listed,
    percent,
    points,
    shown_text,
    texts_beside,
    word_difference,
)
from ledger.events.conversations import transcript

TALK = transcript((("user", "Write a verse."), ("assistant", "Roses ```"), ("user", "Rhyme!")))
OTHER = transcript((("user", "Write a verse."), ("assistant", "Violets")))


def test_numbers_are_rounded_for_people() -> None:
    """Where there is none a dash stands, never a zero."""
    assert (points(1058.49), points(None)) == ("1058", "–")  # noqa: RUF001
    assert (percent(0.625), percent(None)) == ("62%", "–")  # noqa: RUF001
    assert (decimal(-0.5), decimal(None)) == ("\N{MINUS SIGN}0.50", "–")  # noqa: RUF001
    assert interval(-3.0, 4.4) == "\N{MINUS SIGN}3 to 4"
    assert interval(None, 4.4) == "–"  # noqa: RUF001


@pytest.mark.parametrize(
    ("names", "said"),
    [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")],
)
def test_names_are_listed_as_people_do(names: tuple[str, ...], said: str) -> None:
    """The finding is a sentence."""
    assert listed(names) == said


def test_a_conversation_is_shown_turn_by_turn_and_any_other_text_as_it_is() -> None:
    """Fences are for judges; people see who says what."""
    talk, plain = shown_text(TALK, None), shown_text("user:\n```\nnot closed", None)

    assert [(turn.role, turn.text) for turn in talk.turns] == [
        *(("user", "Write a verse."), ("assistant", "Roses ```"), ("user", "Rhyme!"))
    ]
    assert [(turn.role, turn.text) for turn in plain.turns] == [("", "user:\n```\nnot closed")]


def test_a_long_text_is_cut_and_what_is_left_out_is_counted() -> None:
    """One response of a megabyte must not be the whole page."""
    cut, talk = shown_text("x" * 5_000, 3_000), shown_text(TALK, 17)

    assert ([turn.text for turn in cut.turns], cut.n_left_out) == (["x" * 3_000], 2_000)
    assert [turn.text for turn in talk.turns] == ["Write a verse.", "Ros"]
    assert talk.n_left_out == len("es ```Rhyme!")


def test_words_are_marked_that_the_same_turn_of_the_other_lacks() -> None:
    """Both were asked the same."""
    one, other = texts_beside(TALK, OTHER, most=None)

    marked = [[piece.text for piece in turn.pieces if piece.is_own] for turn in one.turns]
    assert marked == [[], ["Roses ```"], ["Rhyme!"]]
    assert [turn.role for turn in other.turns] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("one", "other", "pieces"),
    [
        ("", "", ((), ())),
        (
            "the cat sat",
            "the dog sat",
            (
                (Piece("the ", False), Piece("cat ", True), Piece("sat", False)),
                (Piece("the ", False), Piece("dog ", True), Piece("sat", False)),
            ),
        ),
        ("end ", "end", ((Piece("end ", False),), (Piece("end", False),))),
    ],
)
def test_words_that_the_other_lacks_are_marked(
    one: str, other: str, pieces: tuple[tuple[Piece, ...], tuple[Piece, ...]]
) -> None:
    """Blanks are no words."""
    assert word_difference(one, other) == pieces


TEXTS = st.text(alphabet="ab \n", max_size=30)


@given(TEXTS, TEXTS)
def test_without_the_marked_words_both_texts_are_the_same(a: str, b: str) -> None:
    """So no difference is missed, and both are there whole."""
    both = word_difference(a, b)
    shared = ["".join(each.text for each in pieces if not each.is_own) for pieces in both]

    assert ["".join(each.text for each in pieces) for pieces in both] == [a, b]
    assert shared[0].split() == shared[1].split()


def test_texts_of_many_words_are_not_compared() -> None:
    """To compare them takes the square of their words."""
    long = "word " * 2_000

    assert word_difference(long, "word") == ((Piece(long, False),), (Piece("word", False),))
