"""Results as text: goldens of every format and table, safe to show whatever others wrote."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.cli.tables.render import Format, csv_cell, one_line, shown_json
from commands.cli.tables.table import Column, Table
from commands.runs.report.text import shown
from tests.support.goldens.screens import SAMPLE, SCREENS, rendered, screens

TABLE = Table("tourney/x@1", "X", (Column("text", "Text"), Column("value", "Value", 2)), rows=())


def one_row(text: str | None, value: float | None = None) -> Table:
    """Return a table of one row."""
    return replace(TABLE, rows=({"text": text, "value": value},))


@pytest.mark.parametrize(("name", "text"), screens().items(), ids=screens())
def test_a_screen_is_what_was_agreed_on(name: str, text: str) -> None:
    """Users and their scripts read these; `python -m tests.support.goldens.screens` writes them."""
    assert text == (SCREENS / name).read_bytes().decode()


@pytest.mark.parametrize(
    "text", ["[/INST]", "[red]now[/red]", "[link=https://evil]x[/link]", ":pill:"]
)
def test_markup_in_a_response_is_shown_as_it_is(text: str) -> None:
    """Rich raised MarkupError on a reply that held "[/INST]"."""
    assert text in rendered(one_row(text))


@pytest.mark.parametrize("output_format", Format)
def test_no_format_lets_an_escape_sequence_through(output_format: Format) -> None:
    """Whatever the format, it may end up on a terminal."""
    text = rendered(one_row("\x1b[31m\x9b2J\u202e"), output_format)

    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_json_keeps_full_precision_and_null() -> None:
    """Tables round, data never does; a missing rating is null and not NaN."""
    found = json.loads(rendered(SAMPLE, Format.JSON))

    assert found["schema"] == "tourney/sample@1"
    assert found["judge"] == "reference"
    assert [row["rating"] for row in found["rows"]] == [1400 + 1 / 3, -0.05, None, 1e6]
    assert found["rows"] == list(SAMPLE.rows)


def test_a_line_of_jsonl_is_a_row() -> None:
    """Programs read it line by line."""
    lines = rendered(SAMPLE, Format.JSONL).splitlines()

    assert [json.loads(line) for line in lines] == list(SAMPLE.rows)


@pytest.mark.parametrize("output_format", [Format.JSON, Format.JSONL])
def test_a_number_that_json_cannot_say_is_refused(output_format: Format) -> None:
    """Python would write NaN, which other programs cannot read."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        rendered(one_row("x", float("nan")), output_format)


def test_csv_is_read_back_with_its_values() -> None:
    """Line breaks and quotation marks are the reader's business, formulas are not run."""
    rows = list(csv.DictReader(io.StringIO(rendered(SAMPLE, Format.CSV))))

    assert [row["entrant"] for row in rows] == ["base", "'=1+1", "none", "two\nlines"]
    assert [row["rating"] for row in rows] == ["1400.3333333333333", "-0.05", "", "1000000.0"]


@pytest.mark.parametrize("output_format", [Format.MD, Format.LATEX, Format.TABLE])
def test_what_is_missing_is_a_dash_for_people(output_format: Format) -> None:
    """An empty cell looks like an oversight, a zero like a result."""
    assert "\N{EN DASH}" in rendered(one_row(None), output_format)


def test_latex_gets_no_command_from_a_response() -> None:
    r"""A response may hold \input, and the paper is typeset by somebody else."""
    assert r"\textbackslash{}input\{x\}" in rendered(one_row(r"\input{x}"), Format.LATEX)


def test_markdown_gets_no_markup_from_a_response() -> None:
    """A pipe would break the table, a bracket could be a link, a tag a script."""
    text = rendered(one_row("a|b [x](y) <script> `c`"), Format.MD)

    assert r"| a\|b \[x\](y) \<script\> \`c\` |" in text


def test_a_table_without_rows_is_its_notes_alone() -> None:
    """A frame around nothing says less than a sentence."""
    empty = replace(TABLE, notes=("no fault",))

    assert rendered(empty) == "no fault\n"
    assert json.loads(rendered(empty, Format.JSON))["rows"] == []


def test_a_table_leaves_out_counts_of_nothing_and_data_keeps_them() -> None:
    """A column of noughts takes the room that names need; a script's columns stay the same."""
    failed = Column("value", "Failed", is_counted=True)
    table = replace(TABLE, columns=(Column("text", "Text"), failed))
    none, some = (replace(table, rows=({"text": "x", "value": n},)) for n in (0, 3))

    assert "Failed" not in rendered(none)
    assert "Failed" in rendered(some)
    assert rendered(none, Format.CSV) == "text,value\nx,0\n"


def test_a_large_number_is_shown_by_its_size() -> None:
    """Eighty digits of a perplexity push the other columns off the screen."""
    shown = rendered(one_row("x", 1.2e40))

    assert "1.2e+40" in shown
    assert "9999999.00" in rendered(one_row("x", 9_999_999.0))


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
