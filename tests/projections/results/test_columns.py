"""What the fields of rows say of their columns."""

from datetime import date
from types import ModuleType

import pytest

from projections.results import evaluations, judges, money, outcomes, ratings
from projections.results.columns import RowType, columns_of, csv_of, data_of
from projections.results.evaluations import MetricRow
from projections.results.money import SpendRow
from projections.results.ratings import EloRow, FragilityRow

MODULES = (evaluations, judges, money, outcomes, ratings)


def kinds(module: ModuleType) -> list[RowType]:
    """Return the rows that a module declares."""
    return [each for each in vars(module).values() if hasattr(each, "_fields")]


EVERY = [kind for module in MODULES for kind in kinds(module)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_each_column_is_a_field_and_has_a_heading_of_its_own(kind: RowType) -> None:
    """Two columns of one heading cannot be told apart."""
    columns = columns_of(kind)

    assert {column.key for column in columns} <= {*kind._fields}
    assert len({column.heading for column in columns}) == len(columns)
    assert [c.drawn for c in columns if c.drawn] in ([], ["value", "low", "high"])


def test_a_heading_is_the_name_of_the_field_in_words() -> None:
    """Unless another is given."""
    headings = {column.key: column.heading for column in columns_of(FragilityRow)}

    assert headings["n_decisive"] == "Decisive"
    assert headings["gap"] == "Elo points"


def test_a_column_may_stand_behind_another_than_in_the_data() -> None:
    """Data keeps its order for scripts; people read the number of samples last."""
    shown = [column.key for column in columns_of(MetricRow)]

    assert shown[3:8] == ["value", "standard_error", "low", "high", "n"]
    assert "run_key" not in shown


def test_what_a_number_is_stands_with_its_column() -> None:
    """In its unit, and by what it was found."""
    about = {column.key: column.about for column in columns_of(EloRow)}

    assert about["rating"] == "Elo points"
    assert about["ci95_low"] == "by resampling prompts"
    assert about["n_matches"] == ""


def test_a_day_is_written_as_json_has_it() -> None:
    """All else is as it is."""
    values = [0] * (len(SpendRow._fields) - 3)
    row = SpendRow("ann", None, date(2026, 11, 28), *values)

    assert [*data_of(row).values()][:4] == ["ann", None, "2026-11-28", 0]


def test_csv_has_a_line_for_the_names_and_one_for_each_row() -> None:
    """A cell with a comma is quoted, and what is unknown is empty."""
    assert csv_of(("a", "b"), [("x, y", None), ("z", 1.5)]) == 'a,b\n"x, y",\nz,1.5\n'
