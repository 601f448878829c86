"""Where it is narrow, what matters least goes first, and nothing is broken in two."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from commands.cli.tables.layout import (
    Fitted,
    ShownColumn,
    bars,
    fitted,
    heading_lines,
    row_lines,
    stacked_lines,
)
from projections.results.columns import KEPT, Column

NAME = ShownColumn(
    Column("Entrant", importance=KEPT, key="entrant"), False, ("full_poe", "base_olmo")
)
ELO = ShownColumn(Column("Elo", 1, importance=KEPT, key="elo"), True, ("1564.4", "1167.6"))
LOW = ShownColumn(Column("95 % low", 1, key="low"), True, ("1506.5", "1113.9"))
SEM = ShownColumn(Column("Order SEM", 2, importance=0, key="sem"), True, ("0.68", "0.66"))
WHY = ShownColumn(Column("Why", key="why"), False, ("its reference was another then", "new"))


def lines(fit: Fitted | None) -> list[str]:
    """Return all lines of what fits."""
    assert fit is not None
    return [*heading_lines(fit), *row_lines(fit, 0), *row_lines(fit, 1)]


def test_the_least_important_column_goes_first() -> None:
    """Not simply the last one."""
    fit = fitted([NAME, SEM, ELO, LOW], 27)

    assert fit is not None
    assert [each.column.key for each in fit.cells] == ["entrant", "elo", "low"]
    assert fit.hidden == ["Order SEM"]


def test_of_equally_important_columns_the_last_goes_first() -> None:
    """The first ones are what the others are about."""
    other = replace(SEM, column=replace(SEM.column, key="other"))

    fit = fitted([NAME, SEM, other, ELO], 25)

    assert fit is not None
    assert [each.column.key for each in fit.cells] == ["entrant", "sem", "elo"]


def test_columns_of_one_group_go_together() -> None:
    """A lower bound without the upper one misleads."""
    low, high = (
        replace(LOW, column=replace(LOW.column, key=key, group="interval"))
        for key in ("low", "high")
    )

    fit = fitted([NAME, low, high, ELO], 30)

    assert fit is not None
    assert [each.column.key for each in fit.cells] == ["entrant", "elo"]
    assert fit.hidden == ["95 % low", "95 % low"]


def test_what_does_not_fit_at_all_is_stacked() -> None:
    """A row becomes a name with its values below."""
    assert fitted([NAME, ELO], 12) is None
    assert [*stacked_lines([NAME, ELO, LOW, SEM], [NAME], 0, 30)] == [
        "full_poe",
        "  Elo 1564.4   95 % low 1506.5",
        "  Order SEM 0.68",
    ]


WORDS = st.text(alphabet="ab\u6c34", min_size=1, max_size=12)
PROSE = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


@given(
    st.lists(st.tuples(PROSE, PROSE, st.integers(0, KEPT)), min_size=1, max_size=6),
    st.integers(8, 100),
)
def test_no_line_is_too_long_and_no_word_is_broken(
    given_columns: list[tuple[str, str, int]], width: int
) -> None:
    """Whatever the words, wide characters included."""
    cells = [
        ShownColumn(Column(heading, importance=importance, key=f"c{n}"), False, (text,))
        for n, (heading, text, importance) in enumerate(given_columns)
    ]

    fit = fitted(cells, width)

    if fit is None:
        kept = [each.least for each in cells if each.column.importance == KEPT or each is cells[0]]
        assert sum(kept) + 2 * (len(kept) - 1) > width
        return
    shown = [*heading_lines(fit), *row_lines(fit, 0)]
    words = {word for each in fit.cells for word in (each.column.heading, *each.texts)}
    assert {*" ".join(shown).split()} == {*" ".join(words).split()}
    assert max(map(cell_len, shown)) <= width
    assert len(fit.hidden) == len(cells) - len(fit.cells)


OF = ("low", "rating", "high")


def row(low: float | None, rating: float | None, high: float | None) -> dict[str, float | None]:
    """Return a row of a table."""
    return {"low": low, "rating": rating, "high": high}


def test_what_has_no_value_has_no_bar() -> None:
    """Its row stays in its place."""
    assert bars([row(0, 1, 2), row(None, None, None)], OF, 80) == ["─" * 20 + "●" + "─" * 19, ""]


@pytest.mark.parametrize(
    ("rows", "room"),
    [([row(0, 1, 2)], 19), ([row(None, 1, None)], 80), ([row(None, None, None)], 80)],
)
def test_where_nothing_can_be_compared_there_are_no_bars(
    rows: list[dict[str, float | None]], room: int
) -> None:
    """Ten characters show nothing, nor does one value alone."""
    assert bars(rows, OF, room) is None
