"""Write records to a file as its suffix says: CSV, JSON lines or Parquet."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

from commands.cli.shared.output import write_lines
from commands.errors import ConfigurationError
from commands.importing.formats.rows import Fields
from ledger.storage.files import write_whole
from projections.artifacts.escaping import guarded
from projections.results.columns import csv_of

Columns: TypeAlias = Mapping[str, type]
"""The columns of a table by name, each with the type of its cells."""

_SUFFIXES: Final = (".csv", ".jsonl", ".parquet")


def require_suffix(output: Path | None, *more: str) -> None:
    """Refuse a file of an unknown kind before anything is read; a pipe is as standard output.

    Args:
        output: The file to write; None: standard output.
        more: Suffixes that are known beside those of tables.

    Raises:
        ConfigurationError: The suffix is none of them.
    """
    known = sorted((*_SUFFIXES, *more))
    if output is None or (output.exists() and not output.is_file() and not output.is_dir()):
        return
    if output.suffix not in known:
        kinds = f"{', '.join(known[:-1])} or {known[-1]}"
        fault = f"--output {output}: the suffix is {output.suffix!r}, but must be {kinds}"
        raise ConfigurationError([f"{fault}; the suffix chooses the format"])


def write_records(
    records: Iterable[Fields],
    output: Path | None,
    *,
    columns: Columns,
    row_of: Callable[[Fields], Fields] = dict,
) -> None:
    """Write records as lines of JSON, or as a table to a file that is named .csv or .parquet.

    Args:
        records: What is written; a field may be missing.
        output: The file, which is written completely or not at all; None: standard output.
        columns: Of the table.
        row_of: Turns a record into a row of the table.

    Raises:
        MissingExtra: Parquet is asked for, and pyarrow is not installed.
        CannotWrite: The file cannot be written.
    """
    match output and output.suffix:
        case ".csv":
            # As RFC 4180 has it: a line ends in CR LF, so that either is quoted in a cell.
            rows = (_csv_cells(columns, row_of(record)) for record in records)
            write([csv_of(columns, rows, "\r\n").encode()], output)
        case ".parquet":
            # Imported here: no other file needs what wiring imports.
            wiring = import_module("commands.backends.wiring")
            write([wiring.parquet_content(columns, map(row_of, records))], output)
        case _:
            write(_json_lines(records), output)


def write(lines: Iterable[bytes], output: Path | None) -> None:
    """Write lines to a file, completely or not at all, or to standard output."""
    if output is None:
        write_lines(lines)
    else:
        write_whole(output, lines)


def _json_lines(records: Iterable[Fields]) -> Iterator[bytes]:
    """Yield lines of JSON, escaped to ASCII, which is safe on a terminal."""
    for record in records:
        yield f"{json.dumps(record, allow_nan=False)}\n".encode()


def _csv_cells(columns: Columns, row: Fields) -> list[object]:
    cells = (row.get(name) for name in columns)
    return [guarded(cell) if isinstance(cell, str) else cell for cell in cells]
