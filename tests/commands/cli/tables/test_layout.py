"""Where it is narrow, what matters least goes first, and nothing is broken in two."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from commands.cli.tables.layout import (
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


def called(shown: ShownColumn, key: str, group: str = "") -> ShownColumn:
    """Return a column of another key, perhaps in a group."""
    return replace(shown, column=replace(shown.column, key=key, group=group))


@pytest.mark.parametrize(
    ("cells", "width", "kept", "hidden"),
    [
        ([NAME, SEM, ELO, LOW], 27, ["entrant", "elo", "low"], ["Order SEM"]),
        ([NAME, SEM, called(SEM, "other"), ELO], 25, ["entrant", "sem", "elo"], ["Order SEM"]),
        (
            [NAME, called(LOW, "low", "interval"), called(LOW, "high", "interval"), ELO],
            30,
            ["entrant", "elo"],
            ["95 % low", "95 % low"],
        ),
    ],
    ids=["the least important", "of equals the last", "a group together"],
)
def test_where_it_is_narrow_columns_go(
    cells: list[ShownColumn], width: int, kept: list[str], hidden: list[str]
) -> None:
    """Not simply the last one; a lower bound without the upper one would mislead."""
    fit = fitted(cells, width)

    assert fit is not None
    assert [each.column.key for each in fit.cells] == kept
    assert fit.hidden == hidden


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


@pytest.mark.parametrize(
    ("rows", "room", "drawn"),
    [
        ([row(0, 1, 2), row(None, None, None)], 80, ["─" * 20 + "●" + "─" * 19, ""]),
        ([row(0, 1, 2)], 19, None),
        ([row(None, 1, None)], 80, None),
        ([row(None, None, None)], 80, None),
    ],
)
def test_bars_are_drawn_where_something_can_be_compared(
    rows: list[dict[str, float | None]], room: int, drawn: list[str] | None
) -> None:
    """Ten characters show nothing, nor does one value alone; a row without one has no bar."""
    assert bars(rows, OF, room) == drawn
