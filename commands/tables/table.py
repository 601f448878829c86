"""A result as rows: what every format of output is made from."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from ledger.identity import Json


@dataclass(frozen=True)
class Column:
    """A key of the rows, its heading, and how many digits a table shows; data keeps all."""

    key: str
    heading: str
    digits: int | None = None
    unknown: str = "\N{EN DASH}"  # what a table shows where data has null
    is_signed: bool = False  # a change: more than nothing has a plus
    is_counted: bool = False  # of what should not be: where there is none a table leaves it out


@dataclass(frozen=True)
class Table:
    """Rows under columns, with what must be said beside them."""

    schema: str  # as "tourney/elo@1"
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Json], ...]
    notes: tuple[str, ...] = ()
    facts: dict[str, Json] = field(default_factory=dict)  # beside the rows in JSON
    named_by: tuple[str, ...] = ()  # columns that say what a row is of
    compared: tuple[str, ...] = ()  # columns of numbers that may change with the ledger
    beside: tuple[str, ...] = ()  # columns that say what compared numbers hold among
    zeros: Mapping[str, Mapping[tuple[Json, ...], Hashable]] = field(default_factory=dict)
    """Of a compared column, by the row's name: what its numbers are counted from."""
