"""One table as of two positions."""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from commands.cli.tables.table import Table, difference_table
from ledger.identity import Json
from projections.results.columns import Column


def table(*rows: tuple[str, float | None], as_of: int = 1, **facts: Json) -> Table:
    """Return entrants and their ratings as of a position."""
    return Table(
        schema="tourney/elo@1",
        title="Elo",
        columns=(
            Column("Entrant", role="names", key="entrant"),
            Column("Elo", 1, role="changes", key="rating"),
            Column("Note", key="note"),
        ),
        rows=tuple({"entrant": name, "rating": rating, "note": ""} for name, rating in rows),
        facts={"as_of": as_of, **facts},
    )


def test_a_number_stands_between_what_it_was_and_how_it_changed() -> None:
    """In the order of today's table, of the columns that are compared alone."""
    found = difference_table(table(("a", 1.0), ("b", 2.0)), table(("b", 2.5), ("a", 1.0), as_of=9))

    assert [tuple(row.values()) for row in found.rows] == [
        ("b", 2.0, 2.5, 0.5, None),
        ("a", 1.0, 1.0, 0.0, None),
    ]
    assert [column.key for column in found.columns] == [
        *("entrant", "rating_then", "rating_now", "rating_change")
    ]
    assert (found.schema, found.title) == ("tourney/elo-diff@1", "Elo: since position 1")
    assert (found.facts["as_of"], found.facts["since"]) == (9, 1)


def test_rows_that_are_new_or_gone_are_marked() -> None:
    """A change from nothing is no change that could be counted."""
    found = difference_table(table(("old", 1.0)), table(("new", 2.0)))

    assert [tuple(row.values()) for row in found.rows] == [
        ("new", None, 2.0, None, "new"),
        ("old", 1.0, None, None, "gone"),
    ]
    assert found.columns[-1].heading == "Row"


def test_who_was_not_rated_then_has_no_change() -> None:
    """The row was there, so it is not new; the number was not."""
    found = difference_table(table(("a", None)), table(("a", 2.0)))

    assert [tuple(row.values()) for row in found.rows] == [("a", None, 2.0, None, None)]


def test_other_parameters_are_said() -> None:
    """Half of a change may be that of K in the settings."""
    then, now = table(parameters={"k": 16.0, "seed": 1}), table(parameters={"k": 32.0, "seed": 1})

    found = difference_table(then, replace(now, notes=("Before.",)))

    assert found.notes == ("Before.", "k was 16.0 then: not every change comes from verdicts.")


def test_numbers_that_are_counted_from_elsewhere_do_not_subtract() -> None:
    """A rating about the mean of two is not one about the mean of four, and a test would move."""
    then, now = table(("a", 1000.0), ("b", 900.0)), table(("a", 1100.0), ("b", 950.0))
    zeros: list[Mapping[tuple[Json, ...], Hashable]] = [
        {("a",): "a and x", ("b",): "all"},
        {("a",): "all", ("b",): "all"},
    ]

    found = difference_table(
        replace(then, zeros={"rating": zeros[0]}), replace(now, zeros={"rating": zeros[1]})
    )

    assert [row["rating_change"] for row in found.rows] == [None, 50.0]
    assert "a has no change of rating" in found.notes[-1]


def test_what_numbers_hold_among_stands_beside_them() -> None:
    """As it was and as it is, even if all are one group by now; no group is more than another."""
    grouped = replace(
        table(("a", 1.0)),
        columns=(
            Column("Entrant", role="names", key="entrant"),
            Column("Group", role="is beside", key="group"),
            Column("Elo", role="changes", key="rating"),
        ),
        rows=({"entrant": "a", "rating": 1.0, "group": 2},),
    )
    now = replace(grouped, rows=({"entrant": "a", "rating": 1.5, "group": 1},))

    found = difference_table(grouped, now)

    assert [column.key for column in found.columns][:4] == [
        *("entrant", "group_then", "group_now", "rating_then")
    ]
    assert (found.rows[0]["group_then"], found.rows[0]["group_now"]) == (2, 1)
