"""Results as text: goldens of each format, table and width, safe to show whatever others wrote."""

import json
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from pyarrow import parquet as pq  # type: ignore[import-untyped]  # it has no types
from rich.cells import cell_len

from commands.cli.tables.render import Format, print_table, typed_columns, typed_rows
from commands.cli.tables.table import Table
from commands.importing.formats.parquet import parquet_content
from projections.results.columns import Column
from tests.support.goldens.screens import SCREENS, printed, rendered, screens
from tests.support.goldens.widths import FOLDER, WIDTHS, drawings, in_pipe, on_terminal, widths

TABLE = Table(
    "tourney/x@1", "X", (Column("Text", key="text"), Column("Value", 2, key="value")), rows=()
)


def one_row(text: str | None, value: float | None = None) -> Table:
    """Return a table of one row."""
    return replace(TABLE, rows=({"text": text, "value": value},))


AGREED = {SCREENS / name: text for name, text in screens().items()} | {
    FOLDER / name: text for name, text in widths().items()
}


@pytest.mark.parametrize(
    ("file", "text"), AGREED.items(), ids=lambda each: getattr(each, "name", "")
)
def test_a_screen_is_what_was_agreed_on(file: Path, text: str) -> None:
    """In each format and of each table and width.

    `python -m tests.support.goldens.screens` and `widths` write them.
    """
    assert text == file.read_bytes().decode()


def test_a_table_without_rows_is_its_notes_alone() -> None:
    """A frame around nothing says less than a sentence."""
    empty = replace(TABLE, notes=("no fault",))

    assert rendered(empty) == "no fault\n"
    assert json.loads(rendered(empty, Format.JSON))["rows"] == []


def test_a_table_leaves_out_counts_of_nothing_and_data_keeps_them() -> None:
    """A column of noughts takes the room that names need; a script's columns stay the same."""
    failed = Column("Failed", is_counted=True, key="value")
    table = replace(TABLE, columns=(Column("Text", key="text"), failed))
    none, some = (replace(table, rows=({"text": "x", "value": n},)) for n in (0, 3))

    assert "Failed" not in rendered(none)
    assert "Failed" in rendered(some)
    assert rendered(none, Format.CSV) == "text,value\nx,0\n"


def test_a_large_number_is_shown_by_its_size() -> None:
    """Eighty digits of a perplexity push the other columns off the screen."""
    shown = rendered(one_row("x", 1.2e40))

    assert "1.2e+40" in shown
    assert "9999999.00" in rendered(one_row("x", 9_999_999.0))


def test_a_dimension_that_is_the_only_one_is_in_the_title() -> None:
    """A column that says the same in every row takes the room of one that does not."""
    of = (Column("Dimension", key="dimension"), Column("Value", 2, key="value"))
    one = replace(TABLE, columns=of, rows=({"dimension": "utility", "value": 1.0},))
    two = replace(one, rows=(*one.rows, {"dimension": "factuality", "value": 1.0}))
    unnamed = replace(one, rows=({"dimension": None, "value": 1.0},))

    assert rendered(one).splitlines()[:2] == ["X: utility", "Value"]
    assert rendered(two).splitlines()[:2] == ["X", "Dimension   Value"]
    assert "Dimension" in rendered(unnamed)
    assert "dimension" in rendered(one, Format.CSV)


def test_colour_is_given_up_where_it_is_not_wanted() -> None:
    """NO_COLOR leaves bold letters, which are no colour."""
    warned = replace(one_row("x"), notes=("WARNING: nobody is better.",))

    coloured, plain = (
        drawn(warned, {"TERM": "xterm-256color", **environment})
        for environment in ({}, {"NO_COLOR": "1"})
    )

    assert "\x1b[33mWARNING" in coloured
    assert "\x1b[33m" not in plain
    assert "\x1b[1mX\x1b[0m" in plain


def drawn(table: Table, environment: dict[str, str]) -> str:
    """Return a table as a terminal of 80 columns gets it."""
    draw = partial(print_table, table, Format.TABLE)
    return printed(draw, width=80, force_terminal=True, _environ=environment)


def test_a_moment_is_shown_to_the_second_and_kept_whole() -> None:
    """Microseconds and an offset of zero are for programs."""
    table = one_row("2026-11-22T09:11:18.745522+00:00")

    assert "\n2026-11-22 09:11:18 " in rendered(table)
    assert "2026-11-22T09:11:18.745522+00:00" in rendered(table, Format.CSV)


def test_parquet_has_every_field_with_its_type() -> None:
    """Texts are exact; a column of which nothing is known has the type of its numbers."""
    rows = ({"text": "=1\n", "value": None, "n": 1, "ok": True, "parts": [1, 2], "mean": 1},)
    table = replace(TABLE, rows=(*rows, {**rows[0], "mean": 0.5, "text": None}))
    kinds = typed_columns(table)

    assert kinds == {"text": str, "value": float, "n": int, "ok": bool, "parts": str, "mean": float}
    content = BytesIO(parquet_content(kinds, typed_rows(table, kinds)))
    first, second = pq.read_table(content).to_pylist()
    assert first == {**rows[0], "parts": "[1, 2]", "mean": 1.0}
    assert (second["text"], second["mean"]) == (None, 0.5)
    assert typed_columns(TABLE) == {"text": str, "value": float}


HINT = "hidden: widen the terminal or use --json"
BAR = "\N{BOX DRAWINGS LIGHT HORIZONTAL}\N{BLACK CIRCLE}"


@pytest.mark.parametrize(
    "width", [1, *(pytest.param(each, marks=pytest.mark.nightly) for each in (2, 3))]
)
@pytest.mark.parametrize("name", drawings())
def test_nothing_of_the_first_column_is_lost_on_the_narrowest_terminal(
    name: str, width: int
) -> None:
    """However it is broken, it is there, and no table fails."""
    drawn = "".join(on_terminal(drawings()[name], width).split())

    title = in_pipe(drawings()[name]).splitlines()[0]
    assert "".join(title.split()) in drawn


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize("name", drawings())
def test_no_number_id_or_word_is_broken(name: str, width: int) -> None:
    """A rating of 1564 over .4 is neither; only what is wider than the terminal runs on."""
    draw = drawings()[name]
    lines = on_terminal(draw, width).splitlines()
    whole = {*in_pipe(draw).split(), *HINT.split()}

    broken = {
        word
        for line in lines
        for word in line.split()
        if word not in whole
        and word.rstrip(",;") not in whole
        and not word.isdecimal()
        and {*word} - {*BAR}
    }
    too_long = [line for line in lines if cell_len(line) > width and " " in line.strip()]

    assert not broken
    assert not too_long
