"""Texts and numbers as people are to see them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.runs.report.text import decimal, dollars, interval, listed, percent, points, shown


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]8;;https://evil\x07click\x1b]8;;\x07", r"\x1b]8;;https://evil\x07click\x1b]8;;\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("nul\x00byte", r"nul\x00byte"),
        ("over\rwritten", r"over\rwritten"),
        ("\u202egnirts", r"\u202egnirts"),
        ("pay\u2066pal\u2069", r"pay\u2066pal\u2069"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("line\u2028separator\u2029", r"line\u2028separator\u2029"),
        ("half \ud800 a pair", r"half \ud800 a pair"),
    ],
)
def test_what_works_on_a_terminal_unseen_is_spelled_out(text: str, safe: str) -> None:
    """A response may recolour, overwrite or reverse what stands beside it."""
    assert shown(text) == safe


def test_ordinary_text_is_shown_as_it_is() -> None:
    """Letters of any script, accents, symbols and layout are no attack."""
    text = "5 µg/kg\tfür Ωmega\n\u4e2d\u6587 \U0001f48a [red] </b> e\u0301"

    assert shown(text) == text


@given(st.text(alphabet=st.characters(codec=None)))
def test_nothing_hidden_is_left_in_any_text(text: str) -> None:
    """The list of categories is closed: what is not named is visible."""
    categories = {unicodedata.category(c) for c in shown(text) if c not in "\n\t"}

    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_numbers_are_rounded_for_people() -> None:
    """Where there is none a dash stands, never a zero; an unknown price is no zero either."""
    assert (points(1058.49), points(None)) == ("1058", "–")  # noqa: RUF001
    assert (percent(0.625), percent(None)) == ("62%", "–")  # noqa: RUF001
    assert (decimal(-0.5), decimal(None)) == ("\N{MINUS SIGN}0.50", "–")  # noqa: RUF001
    assert interval(-3.0, 4.4) == "\N{MINUS SIGN}3 to 4"
    assert interval(None, 4.4) == "–"  # noqa: RUF001
    assert [dollars(each) for each in (None, 0.0, 0.00123, 12.5, 1234.5)] == [
        "?",
        "$0.00",
        "$0.0012",
        "$12.50",
        "$1,234.50",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")],
)
def test_names_are_listed_as_people_do(names: tuple[str, ...], said: str) -> None:
    """The finding is a sentence."""
    assert listed(names) == said
