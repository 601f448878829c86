"""Tables of the pages: what their rows declare, in the words of the page."""

from typing import Annotated, NamedTuple

from commands.report.text import page_columns
from projections.results.columns import Column, Shown


class Row(NamedTuple):
    """A row of every kind of field."""

    entrant: Shown[str]
    gap: Annotated[float | None, Column("Elo points", 1)]
    n_failed: Annotated[int, Column(is_counted=True, importance=1)]
    which: Shown[tuple[str | None, ...] | None]
    said: Annotated[str, Column(longest=9)]
    digest: str


def row(said: str = "Yes.", n_failed: int = 0) -> Row:
    """Return a row."""
    return Row("ann", -1234.56, n_failed, ("p1", None, *(f"p{n}" for n in range(2, 9))), said, "0f")


def test_a_table_has_the_columns_that_its_rows_declare() -> None:
    """A field without a column is in the data alone, and a count of nothing in neither."""
    columns = page_columns([row(), row()])

    assert [(each.heading, each.kind) for each in columns] == [
        ("Entrant", "name"),
        ("Elo points", "n"),
        ("Which", "name"),
        ("Said", "said"),
    ]
    assert [each.cells[0] for each in columns] == [
        *("ann", "\N{MINUS SIGN}1234.6", "p1, p2, p3, p4, p5, p6 and 2 more", "Yes.")
    ]
    assert page_columns([]) == []


def test_what_matters_less_is_left_out_where_there_is_no_room() -> None:
    """A telephone shows the rest without scrolling."""
    (counted,) = [each for each in page_columns([row(n_failed=1200)]) if each.kind == "n wide"]

    assert (counted.heading, counted.cells) == ("Failed", ("1,200",))
    assert "Failed" not in {
        each.heading for each in page_columns([row(n_failed=1)], without=["n_failed"])
    }


def test_a_long_text_is_shown_without_its_middle() -> None:
    """Its question may stand at either end."""
    (*_, said) = page_columns([row(f"Begin {'x' * 9_000} end?")])

    (cell,) = said.cells
    assert (cell[:6], cell[-5:], len(cell)) == ("Begin ", " end?", 399)
