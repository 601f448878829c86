"""Whatever others wrote can be shown: nothing in it takes effect."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.cli.tables.screen.escapes import csv_cell, one_line, shown_json
from projections.artifacts.escaping import shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_json_made_safe_says_the_same(text: str) -> None:
    """Data is for machines, which must get every character back."""
    plain = json.dumps({"text": text}, ensure_ascii=False)

    safe = shown_json(plain)

    assert json.loads(safe) == {"text": text}
    assert safe == shown(safe)


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
    assert csv_cell(formula) == f"'{formula}"


def test_a_cell_of_a_spreadsheet_hides_nothing() -> None:
    """A CSV may be printed on a terminal as well."""
    assert csv_cell("\x1b[31m=1\r") == r"\x1b[31m=1\r"


@pytest.mark.parametrize("text", ["", "aspirin", "1 = 1", "a@b", "'=1"])
def test_text_that_is_no_formula_stays_as_it_is(text: str) -> None:
    """Data is not changed without need."""
    assert csv_cell(text) == text
