"""What a model wrote is seen whole, and is no formula."""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from projections.artifacts.escaping import (
    csv_cell,
    escaped,
    escaped_json,
    guarded,
    markdown_text,
    one_line,
    unguarded,
)


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
    assert escaped(text) == safe


def test_ordinary_text_is_shown_as_it_is() -> None:
    """Letters of any script, accents, symbols and layout are no attack."""
    text = "5 µg/kg\tfür Ωmega\n\u4e2d\u6587 \U0001f48a [red] </b> e\u0301"

    assert escaped(text) == escaped_json(text) == text


@given(st.text(alphabet=st.characters(codec=None)))
def test_nothing_hidden_is_left_in_any_text(text: str) -> None:
    """The list of categories is closed: what is not named is visible."""
    categories = {unicodedata.category(c) for c in escaped(text) if c not in "\n\t"}

    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(text=st.text() | st.text(alphabet="'=\uff1da"))
@example(text="'=1")
def test_a_guarded_text_comes_back_and_is_no_formula(text: str) -> None:
    """The law of the guard: whatever the text, apostrophes of its own included."""
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith((*"=+-@\t\r\n\uff1d\uff0b\uff0d\uff20",))


@given(st.text(alphabet=st.characters(codec=None)))
def test_json_made_safe_says_the_same(text: str) -> None:
    """Data is for machines, which must get every character back."""
    plain = json.dumps({"text": text}, ensure_ascii=False)

    safe = escaped_json(plain)

    assert json.loads(safe) == {"text": text}
    assert safe == escaped(safe)


def test_a_cell_is_one_line_of_single_spaces() -> None:
    """A response of many lines must not break the table that it stands in."""
    assert one_line("  first\n\n\tsecond\u2028third ") == r"first second\u2028third"


@pytest.mark.parametrize(
    "formula",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\n=1",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff201",
        '=HYPERLINK("https://evil")',
        "=cmd|'/C'!A0",
    ],
)
def test_no_spreadsheet_reads_text_as_a_formula(formula: str) -> None:
    """Opening a CSV must not run anything."""
    assert csv_cell(formula) == guarded(formula) == f"'{formula}"
    assert unguarded(guarded(formula)) == formula


def test_a_cell_of_a_spreadsheet_hides_nothing() -> None:
    """A CSV may be printed on a terminal as well."""
    assert csv_cell("\x1b[31m=1\r") == r"\x1b[31m=1\r"


@pytest.mark.parametrize("text", ["", "aspirin", "1 = 1", "a@b", "'=1"])
def test_text_that_is_no_formula_stays_as_it_is(text: str) -> None:
    """Data is not changed without need."""
    assert csv_cell(text) == text


def test_markdown_shows_a_name_as_it_is() -> None:
    """On one line, since a line break ends a row of a table."""
    assert markdown_text("full_poe <b>|x|\n[a](b)") == r"full\_poe \<b\>\|x\| \[a\](b)"
