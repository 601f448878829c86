"""Every kind of hostile text, on every surface on which a text of a model may be seen."""

import csv
import io
from collections.abc import Callable, Mapping
from typing import Final

import pytest

import tourney
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from commands.report.page import templates
from projections.artifacts.escaping import escaped, is_hidden, unguarded
from projections.results.columns import Column
from tests.support.builders.reports import ParsedPage
from tests.support.goldens.screens import rendered

TEXTS: Final[Mapping[str, str]] = {
    "script": "<script>alert(1)</script></style></title></textarea>{{ 7 * 7 }}",
    "handler": "\"' onmouseover='alert(1)' x=\"<img src=x onerror=alert(1)>",
    "ANSI": "\x1b[2J\x1b[31mred \x9b2J",
    "OSC": "\x1b]8;;http://evil.example\x07link\x1b]0;title\x1b\\",
    "right to left": "abc\u202egnp.exe\u2066\u200f",
    "formula": '=HYPERLINK("http://evil.example";1)',
    "line of a megabyte": "la" * 500_000,
    "NUL": "nul\x00byte",
    "lone surrogate": "half \ud800 of a pair",
}


def on_page(text: str) -> str:
    """Show a text in the report and in `tourney view`, as a name and as itself."""
    template = templates().from_string('<p title="{{ it }}">{{ it }}</p><b>{{ it | name }}</b>')
    return template.render(it=text)


def on_terminal(text: str) -> str:
    """Show a text in a table."""
    return rendered(_table(text))


def in_csv(text: str) -> str:
    """Show a text in a cell of a spreadsheet."""
    return rendered(_table(text), Format.CSV)


def in_notebook(text: str) -> str:
    """Show a text in a row at the end of a notebook's cell."""
    row = tourney.WinRateRow._make([text] * len(tourney.WinRateRow._fields))
    return tourney.Rows(tourney.WinRateRow, (row,))._repr_html_()


def _table(text: str) -> Table:
    return Table("tourney/x@1", "X", (Column("Text", key="text"),), rows=({"text": text},))


@pytest.mark.parametrize("show", [on_page, on_terminal, in_csv, in_notebook])
@pytest.mark.parametrize("name", TEXTS)
def test_nothing_hidden_reaches_anybody(name: str, show: Callable[[str], str]) -> None:
    """What is written can be encoded, and neither moves a cursor nor turns a line around."""
    found = show(TEXTS[name])

    assert found.encode()
    assert not [each for each in set(found) - {"\r"} if is_hidden(each)]


@pytest.mark.parametrize("show", [on_page, in_notebook])
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_text_where_html_is_read(name: str, show: Callable[[str], str]) -> None:
    """It adds no element and no attribute, and is there whole."""
    found, plain = ParsedPage(show(TEXTS[name])), ParsedPage(show("plain"))

    assert found.kinds <= plain.kinds | {("wbr",)}  # where a long name may be broken
    assert escaped(TEXTS[name]) in "".join(found.texts)


@pytest.mark.parametrize("name", TEXTS)
def test_a_cell_of_a_spreadsheet_is_no_formula_and_comes_back(name: str) -> None:
    """One cell holds it, with an apostrophe before what could be a formula."""
    before = csv.field_size_limit(2**20)  # a spreadsheet's own limit may be as low as Python's
    ((_,), (cell,)) = csv.reader(io.StringIO(in_csv(TEXTS[name]), newline=""), strict=True)
    csv.field_size_limit(before)

    assert not cell.startswith((*"=+-@\t\r\n",))
    assert unguarded(cell) == escaped(TEXTS[name])


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"line of a megabyte"}))
def test_a_table_shows_a_text_whole(name: str) -> None:
    """However the lines of the table are broken."""
    found = "".join(on_terminal(TEXTS[name]).split())

    assert "".join(escaped(TEXTS[name]).split()) in found
