"""`tourney sql`: query the ledger with SQL."""

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import typer

from commands.auditing.query import Answer, ask
from commands.cli.shared.selection import OF_LEDGER, WRITTEN, Selected, selecting
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table, table_of
from ledger.identity import Json
from ledger.storage.schema import VIEWS
from ledger.store import Ledger
from projections.artifacts.escaping import one_line
from projections.results.columns import KEPT, Column, Kept, Named

_ASKED_FOR: Final = KEPT + 1  # a column that stays one, though all rows have the same there
_LONG: Final = 200  # characters of a text that a table shows
_CUT: Final = "Long texts are cut: --json and --format csv have all of them."


@selecting(*OF_LEDGER, *WRITTEN)
def sql(
    ctx: Selected,
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="One SELECT. Without it, all tables are listed."),
    ] = None,
) -> None:
    """Query the ledger with SQL.

    Without a query, list its tables and columns; the page "The ledger in SQL" explains them.
    Queries are read-only.

    Example: tourney sql "select winner, count(*) from outcomes group by winner"
    """
    selection = ctx.selection
    if query is None:
        selection.write(views_table())
        return
    with Ledger.read_only(selection.path) as opened:
        answer = ask(opened, query)
    selection.write(answer_table(answer, is_cut=selection.chosen_format is Format.TABLE))


class SqlTableRow(NamedTuple):
    """A table that a query can name."""

    table: Named[str]
    holds: Annotated[str, Column(importance=KEPT, after="columns")]
    columns: Kept[str]


def views_table() -> Table:
    """Return a row for each table that a query can name."""
    return table_of(
        SqlTableRow,
        (
            SqlTableRow(
                table=view.name,
                holds=view.meaning,
                columns=", ".join(column.name for column in view.columns),
            )
            for view in VIEWS
        ),
        "tourney/sql-tables@1",
        "Tables of a ledger",
    )


def answer_table(answer: Answer, *, is_cut: bool) -> Table:
    """Return the rows of an answer, perhaps with only the beginning of long texts."""
    names = [one_line(name) for name in answer.names]
    rows = tuple(dict(zip(names, row, strict=True)) for row in answer.rows)
    shown = tuple(map(_cut, rows)) if is_cut else rows
    notes = () if rows else ("The query found no rows.",)
    return Table(
        schema="tourney/sql@1",
        title="Answer",
        columns=tuple(Column(name, key=name, importance=_ASKED_FOR) for name in names),
        rows=shown,
        notes=(*notes, _CUT) if shown != rows else notes,
    )


def _cut(row: Mapping[str, Json]) -> Mapping[str, Json]:
    return {
        name: f"{cell[:_LONG]}..." if isinstance(cell, str) and len(cell) > _LONG else cell
        for name, cell in row.items()
    }
