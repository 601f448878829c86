"""The words that differ are those that a reader has to compare."""

from hypothesis import given
from hypothesis import strategies as st

from commands.cli.tables.screen.words import Spans, differing

TEXTS = st.text(alphabet="ab \n", max_size=30)


def left_after(text: str, spans: Spans) -> list[str]:
    """Return the words of a text that were not marked."""
    kept = "".join(
        " " if any(start <= n < end for start, end in spans) else character
        for n, character in enumerate(text)
    )
    return kept.split()


def test_only_the_words_that_differ_are_marked() -> None:
    """Everything marked would be nothing marked."""
    a, b = "Axillary nerve, of course.", "Radial nerve, of\ncourse. Yes."

    in_a, in_b = differing(a, b)

    assert [a[slice(*span)] for span in in_a] == ["Axillary"]
    assert [b[slice(*span)] for span in in_b] == ["Radial", "Yes."]


@given(TEXTS, TEXTS)
def test_without_the_marked_words_both_texts_are_the_same(a: str, b: str) -> None:
    """So no difference is missed."""
    in_a, in_b = differing(a, b)

    assert left_after(a, in_a) == left_after(b, in_b)


def test_very_long_texts_are_not_compared() -> None:
    """Minutes of comparing are no help."""
    assert differing("a " * 5_001, "b") == ((), ())
