"""Texts and numbers as people are to see them."""

import pytest

from commands.report.text import decimal, interval, listed, percent, points


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
