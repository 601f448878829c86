"""Write tables in each output format, with text of models escaped. Tables round, data does not."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from commands.cli.tables.table import Column, Table
from commands.runs.report.text import is_hidden, shown
from ledger.identity import Json

_FORMULA: Final = ("=", "+", "-", "@", "\t")


def shown_json(text: str) -> str:
    """Return the same JSON with invisible characters escaped."""
    return "".join(
        json.dumps(character)[1:-1] if is_hidden(character) else character for character in text
    )


def one_line(text: str) -> str:
    """Return escaped text on one line."""
    return " ".join(shown(text).split())


def csv_cell(text: str) -> str:
    """Return escaped text that no spreadsheet reads as a formula."""
    safe = shown(text)
    return f"'{safe}" if safe.startswith(_FORMULA) else safe


_LISTED: Final = 3  # of a list in a table; data has all
_LARGE: Final = 1e7  # from here on tables use scientific notation
_DIGEST: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
"""Tables show the first 12 characters of a digest, which `tourney show` accepts."""


class Format(StrEnum):
    """An output format."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MD = "md"
    LATEX = "latex"


def print_table(table: Table, output_format: Format, console: Console) -> None:
    """Write a table to the console of standard output."""
    if output_format is Format.TABLE:
        if table.rows:
            console.print(_rich(table))
        for note in table.notes:
            console.print(Text(one_line(note)), soft_wrap=True)
    else:
        console.file.write(_WRITERS[output_format](table))


def _rich(table: Table) -> RichTable:
    drawn = RichTable(title=Text(one_line(table.title)), title_justify="left")
    columns = [
        each
        for each in table.columns
        if not each.is_counted or any(row[each.key] for row in table.rows)
    ]
    for column in columns:
        numeric = any(isinstance(row[column.key], int | float) for row in table.rows)
        drawn.add_column(
            Text(column.heading), justify="right" if numeric else "left", overflow="fold"
        )
    for row in table.rows:
        drawn.add_row(*(Text(_cell(row[column.key], column)) for column in columns))
    return drawn


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
            return _DIGEST.sub(r"\1", one_line(value))
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
    return f"{shown_json(text)}\n"


def _csv(table: Table) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    for row in table.rows:
        writer.writerow([_csv_value(row[column.key]) for column in table.columns])
    return stream.getvalue()


def _csv_value(value: Json) -> Json:
    match value:
        case str():
            return csv_cell(value)
        case list() | tuple():
            return csv_cell("; ".join("" if each is None else str(each) for each in value))
        case _:
            return value


_MD: Final = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"})
_LATEX: Final = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


def _markdown(table: Table) -> str:
    rule = ["---"] * len(table.columns)
    lines = [[column.heading for column in table.columns], rule, *_cells(table, _MD)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _latex(table: Table) -> str:
    heading = " & ".join(column.heading.translate(_LATEX) for column in table.columns)
    body = "".join(f"{' & '.join(cells)} \\\\\n" for cells in _cells(table, _LATEX))
    return (
        f"\\begin{{tabular}}{{{'l' * len(table.columns)}}}\n\\hline\n{heading} \\\\\n\\hline\n"
        f"{body}\\hline\n\\end{{tabular}}\n"
    )


def _cells(table: Table, escapes: Mapping[int, str]) -> list[list[str]]:
    return [
        [_cell(row[column.key], column).translate(escapes) for column in table.columns]
        for row in table.rows
    ]


_WRITERS: Final[Mapping[Format, Callable[[Table], str]]] = {
    Format.JSON: _json,
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
    Format.MD: _markdown,
    Format.LATEX: _latex,
}
