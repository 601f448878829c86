"""Write tables in each output format, with text of models escaped. Tables round, data does not."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from importlib import import_module
from itertools import chain
from textwrap import wrap
from typing import Final

from rich.console import Console
from rich.text import Text

from commands.cli.tables import layout
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.report.text import without_middle
from ledger.identity import Json
from projections.artifacts.escaping import csv_cell, escaped_json, markdown_text, one_line
from projections.results.columns import KEPT, Column, csv_of

_FIGURES: Final = "commands.report.drawings.figures"  # imported when one is asked for
_NO_FIGURE: Final = (
    "this has no figure; figures exist for `tourney project elo` (also with --k 16,4,32), `bt`,"
    " `winrates`, `calibration` and `metrics` (also with --curve)"
)
_IN_TITLE: Final = ("dimension", "judge", "stream")  # go there if all rows have the same
_BAR: Final = "cyan"
_WARNING: Final = "yellow"
_LISTED: Final = 3  # of a list in a table; data has all
_LARGE: Final = 1e7  # from here on tables use scientific notation
_DIGEST: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
"""Tables show the first 12 characters of a digest, which `tourney log` accepts."""
_MOMENT: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\+00:00")
"""Tables show a moment in UTC to the second."""


class Format(StrEnum):
    """An output format."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MD = "md"
    PARQUET = "parquet"
    SVG = "svg"


def print_table(table: Table, output_format: Format, console: Console) -> None:
    """Write a table to the console of standard output."""
    if output_format is not Format.TABLE:
        console.file.write(_WRITERS[output_format](table))
        return
    notes = (
        _sentence(note, _WARNING if note.startswith("WARNING") else "", console)
        for note in table.notes
    )
    rows = _screen(table, console) if table.rows else ()
    print_lines(chain(rows, chain.from_iterable(notes)), console)


def print_lines(lines: Iterable[Text], console: Console) -> None:
    """Write lines that are as long as they should be; files and pipes get the bare text."""
    for line in lines:
        line.rstrip()
        if console.is_terminal:
            console.print(line, soft_wrap=True)
        else:
            console.file.write(f"{line.plain}\n")


def _sentence(text: str, style: str, console: Console) -> Iterator[Text]:
    """Yield the lines of a sentence; on a terminal it is broken between words, not within."""
    words = one_line(text)
    lines = (
        wrap(words, console.width, break_long_words=False, break_on_hyphens=False)
        if console.is_terminal
        else [words]
    )
    yield from (Text(line, style) for line in lines)


def _screen(table: Table, console: Console) -> Iterator[Text]:
    """Yield the title and the rows, in columns or stacked, as they fit."""
    in_title, cells = _titled(table)
    yield from _sentence(": ".join((table.title, *in_title)), "bold", console)
    fit = layout.fitted(cells, console.width)
    if fit is None:
        names = [cell for cell in cells if cell.column.role == "names"] or cells[:1]
        for row in range(len(table.rows)):
            yield from map(Text, layout.stacked_lines(cells, names, row, console.width))
        return
    yield from (Text(line, "bold") for line in layout.heading_lines(fit))
    drawn = _bars(table, fit, console)
    for row in range(len(table.rows)):
        first, *more = layout.row_lines(fit, row)
        bar = (layout.GAP + drawn[row], _BAR) if drawn else ""
        yield Text.assemble(first, bar)
        yield from map(Text, more)
    if fit.hidden:
        hint = f"hidden: {', '.join(fit.hidden)}; widen the terminal or use --json"
        yield from _sentence(hint, "dim", console)


def _titled(table: Table) -> tuple[list[str], list[layout.ShownColumn]]:
    """Return what all rows have in common and the title says, and the cells of the others."""
    in_title, cells = [], []
    for column in table.columns:
        values = [row[column.key] for row in table.rows]
        first = values[0]
        may_move = column.key in _IN_TITLE and column.importance <= KEPT
        if may_move and isinstance(first, str) and {*map(str, values)} == {first}:
            in_title.append(first)
        elif not column.is_counted or any(value != 0 for value in values):
            texts = tuple(_cell(value, column) for value in values)
            is_number = column.digits is not None or any(isinstance(v, int | float) for v in values)
            cells.append(layout.ShownColumn(column, is_number, texts))
    return in_title, cells


def _bars(table: Table, fit: layout.Fitted, console: Console) -> list[str] | None:
    """Return a bar for each row, on a terminal with room beside the columns."""
    drawn = {column.drawn: column.key for column in table.columns if column.drawn}
    if not drawn or not console.is_terminal:
        return None
    keys = drawn["low"], drawn["value"], drawn["high"]
    return layout.bars(table.rows, keys, console.width - fit.width - len(layout.GAP))


def _cell(value: Json, column: Column) -> str:
    sign = "+" if column.is_signed else ""
    match value:
        case None:
            return column.unknown
        case float() if column.digits is not None and abs(value) >= _LARGE:
            return f"{value:{sign}.{column.digits}g}"
        case float() if column.digits is not None:
            return f"{value:{sign}.{column.digits}f}"
        case int() if sign:
            return f"{value:+}"
        case str():
            text = _MOMENT.sub(r"\1 \2", _DIGEST.sub(r"\1", one_line(value)))
            return text if column.longest is None else without_middle(text, column.longest)
        case list() | tuple():
            shown = [_cell(each, column) for each in value[:_LISTED]]
            return ", ".join([*shown, *(["..."] if len(value) > _LISTED else [])])
        case _:
            return str(value)


def _json(table: Table) -> str:
    return as_json({"schema": table.schema, **table.facts, "rows": list(table.rows)}, indent=2)


def _jsonl(table: Table) -> str:
    return "".join(as_json(row) for row in table.rows)


def as_json(value: Json, indent: int | None = None) -> str:
    """Return a value as JSON, invisible characters escaped, that ends its line."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return f"{escaped_json(text)}\n"


def _csv(table: Table) -> str:
    keys = [column.key for column in table.columns]
    return csv_of(keys, ([_csv_value(row[key]) for key in keys] for row in table.rows))


def _csv_value(value: Json) -> Json:
    match value:
        case str():
            return csv_cell(value)
        case list() | tuple():
            return csv_cell("; ".join("" if each is None else str(each) for each in value))
        case _:
            return value


def _svg(table: Table) -> str:
    """Return the figure of a table."""
    to_figure = import_module(_FIGURES).FIGURES.get(table.kind)
    if to_figure is None:
        raise ConfigurationError([f"--format svg: {_NO_FIGURE}"])
    if not table.rows:
        raise ConfigurationError(["--format svg: the table has no rows to draw"])
    svg: str = to_figure(table.title, table.rows)
    return svg


def typed_columns(table: Table) -> dict[str, type]:
    """Return the keys of the rows, each with the type of its values."""
    keys = dict.fromkeys(key for row in table.rows for key in row)
    rounded = {column.key for column in table.columns if column.digits is not None}
    return {
        key: _type_of({type(row.get(key)) for row in table.rows}, float if key in rounded else str)
        for key in keys or (column.key for column in table.columns)
    }


def _type_of(found: set[type], where_unknown: type) -> type:
    kinds = found - {type(None)}
    if kinds == {int, float}:
        return float
    return kinds.pop() if len(kinds) == 1 and kinds <= {str, int, float, bool} else where_unknown


def typed_rows(table: Table, kinds: Mapping[str, type]) -> Iterator[dict[str, Json]]:
    """Yield the rows with texts exactly as they are; lists and objects are JSON."""
    for row in table.rows:
        yield {key: _typed(row.get(key), kind) for key, kind in kinds.items()}


def _typed(value: Json, kind: type) -> Json:
    match value:
        case None | str():
            return value
        case int() | float() if kind in {int, float, bool}:
            return value
        case _:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _markdown(table: Table) -> str:
    rule = ["---"] * len(table.columns)
    cells = (
        [markdown_text(_cell(row[column.key], column)) for column in table.columns]
        for row in table.rows
    )
    lines = [[column.heading for column in table.columns], rule, *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_WRITERS: Final[Mapping[Format, Callable[[Table], str]]] = {
    Format.JSON: _json,
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
    Format.MD: _markdown,
    Format.SVG: _svg,
}
