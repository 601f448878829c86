"""How a field of a row is shown: the one declaration from which every output is made.

A row is a frozen named tuple. A field annotated with a `Column` is a column of tables; every field
is in the data. To add one to a result is a line here and a line where the row is computed.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar
from typing import get_type_hints as hints_of

if TYPE_CHECKING:
    from ledger.identity import Json

KEPT: Final = 3
"""The importance of a column that is never left out."""


@dataclass(frozen=True)
class Column:
    """A heading, the digits that a table shows (data keeps all), and what the numbers mean."""

    heading: str = ""  # empty: the field's name, `n_left_out` as "Left out"
    digits: int | None = None
    _: KW_ONLY
    unknown: str = "\N{EN DASH}"  # shown in place of null
    is_signed: bool = False  # positive numbers have a plus
    is_counted: bool = False  # left out of a table if all are zero
    importance: int = 2  # where it is narrow, the least important are left out first
    group: str = ""  # columns of one group are left out together
    longest: int | None = None  # characters of a text that a table shows; None: all
    after: str = ""  # the field that it follows in tables; empty: the one before it in the row
    role: Literal["names", "changes", "is beside", ""] = ""
    """Whether it names a row, or --diff shows its change, or what it was and is."""
    drawn: Literal["low", "value", "high", ""] = ""  # in a bar, where there is room for one
    unit: str = ""
    meaning: str = ""
    key: str = ""  # the field's name

    @property
    def about(self) -> str:
        """What its numbers are, in a few words."""
        return ", ".join(filter(None, (self.unit, self.meaning)))


Value = TypeVar("Value")
Shown: TypeAlias = Annotated[Value, Column()]
Kept: TypeAlias = Annotated[Value, Column(importance=KEPT)]
Named: TypeAlias = Annotated[Value, Column(importance=KEPT, role="names")]
RowType: TypeAlias = type[NamedTuple]


@cache
def columns_of(kind: RowType) -> tuple[Column, ...]:
    """Return the columns of a row, in the order in which tables have them."""
    declared = {
        name: replace(
            column,
            key=name,
            heading=column.heading or name.removeprefix("n_").replace("_", " ").capitalize(),
        )
        for name, hint in hints_of(kind, include_extras=True).items()
        for column in getattr(hint, "__metadata__", ())
    }
    order = [name for name, column in declared.items() if not column.after]
    for name, column in declared.items():
        if column.after:
            order.insert(order.index(column.after) + 1, name)
    return tuple(declared[name] for name in order)


def data_of(row: NamedTuple) -> "dict[str, Json]":
    """Return a row as JSON has it."""
    return {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in row._asdict().items()
    }


def csv_of(keys: Iterable[str], rows: Iterable[Iterable[Any]], line_end: str = "\n") -> str:
    """Return cells as CSV below the names of their columns."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=line_end)
    writer.writerow(keys)
    writer.writerows(rows)
    return stream.getvalue()
