"""Tables of the pages: rows under the columns that their type declares, as on a terminal."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Final, NamedTuple

from commands.errors import joined_names
from commands.report.text import decimal, without_middle
from projections.results.columns import Column, columns_of

_LONGEST: Final = 400  # characters of a text
_LESS: Final = 2  # an importance: a telephone has no room for numbers of less


class PageColumn(NamedTuple):
    """A column of a table with its cells."""

    heading: str
    kind: str  # "n": numbers; "n wide": not on a telephone; "name"; "said": a text, or a day
    cells: tuple[str, ...]


def page_columns(rows: Sequence[NamedTuple], without: Collection[str] = ()) -> list[PageColumn]:
    """Return the columns of rows, but for some fields, and those that count nothing."""
    declared = columns_of(type(rows[0])) if rows else ()
    columns = ((column, [getattr(row, column.key) for row in rows]) for column in declared)
    return [
        PageColumn(
            column.heading,
            _kind(column, values),
            tuple(_cell(value, column) for value in values),
        )
        for column, values in columns
        if column.key not in without and (any(values) or not column.is_counted)
    ]


def _kind(column: Column, values: Sequence[object]) -> str:
    if column.digits is not None or any(isinstance(value, int | float) for value in values):
        return "n wide" if column.importance < _LESS else "n"
    is_whole = column.longest is not None or any(isinstance(value, date) for value in values)
    return "said" if is_whole else "name"


def _cell(value: object, column: Column) -> str:
    match value:
        case None:
            return column.unknown
        case float():
            return decimal(value, column.digits)
        case int():
            return f"{value:,}"
        case tuple():
            return joined_names([str(each) for each in value if each is not None])
        case _:
            return without_middle(str(value), _LONGEST)
