"""The rows of a file as records, whatever its kind: the end of its name says which that is.

Rows are read as they are asked for, but for a JSON file, which is read whole.
"""

import csv
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from commands.errors import ConfigurationError
from commands.importing.formats.catalogue import BattleFormat
from commands.importing.formats.rows import BadRow, Record


def decode_json(content: bytes) -> object:
    """Return what JSON says, and None for NaN.

    Raises:
        ValueError: It is no JSON, even so, or nested too deep to be read.
    """
    try:
        return _decode_with_nan(content)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _decode_with_nan(content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except ValueError:
        return json.loads(content, parse_constant=_constant)


def _constant(name: str) -> float | None:
    return None if name == "NaN" else float(name)


_LONGEST_CELL: Final = 2**31 - 1  # characters: conversations are longer than csv's default


class Sheet(NamedTuple):
    """A table's header, and its rows."""

    header: Sequence[str]
    rows: Iterator[Record | BadRow]


OpenParquet: TypeAlias = Callable[[Path, Collection[str]], Sheet]
"""Opens a Parquet file, of which only some columns are wanted in the rows."""


def records_of(
    path: Path, of: BattleFormat, open_parquet: OpenParquet
) -> Iterator[Record | BadRow]:
    """Yield the rows of a file.

    Raises:
        ConfigurationError: It cannot be read, is of no kind that is known, or is a table without
            a column that the format needs.
    """
    try:
        match path.suffix:
            case ".csv":
                yield from _with_header(path, of, _open_csv(path))
            case ".parquet":
                wanted = {*of.required, *of.optional}
                yield from _with_header(path, of, open_parquet(path, wanted))
            case ".jsonl":
                yield from _json_lines(path)
            case ".json":
                yield from _json_rows(path)
            case other:
                kinds = ".csv, .json, .jsonl or .parquet"
                raise ConfigurationError([f"{path}: {other!r} is no {kinds}; rename the file"])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def _with_header(path: Path, of: BattleFormat, sheet: Sheet) -> Iterator[Record | BadRow]:
    """Yield a table's rows, once its header is seen to be of the format."""
    faults = [
        f"{path}: it has no column {name!r}, which format {of.name} needs; its columns are"
        f" {', '.join(map(repr, sheet.header))}"
        for name in of.required
        if name not in sheet.header
    ]
    if faults:
        raise ConfigurationError(faults)
    yield from sheet.rows


def _open_csv(path: Path) -> Sheet:
    rows = _csv_rows(path)
    _, header = next(rows, (1, []))
    return Sheet(header, (_csv_record(line, header, cells) for line, cells in rows if cells))


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file, each with the line that it begins on."""
    csv.field_size_limit(_LONGEST_CELL)
    with path.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.reader(opened)
        line = 1
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1


def _csv_record(line: int, header: list[str], cells: list[str]) -> Record | BadRow:
    if len(cells) != len(header):
        return BadRow(line, f"it has {len(cells)} cells, and the header {len(header)}")
    return Record(line, dict(zip(header, cells, strict=True)))


def _json_lines(path: Path) -> Iterator[Record | BadRow]:
    with path.open("rb") as opened:
        for line, content in enumerate(opened, start=1):
            if not content.isspace():
                yield _json_record(line, content)


def _json_record(line: int, content: bytes) -> Record | BadRow:
    try:
        found = decode_json(content)
    except ValueError as error:
        return BadRow(line, f"it is no JSON: {error}")
    return Record(line, found) if isinstance(found, dict) else BadRow(line, "it is no JSON object")


def _json_rows(path: Path) -> Iterator[Record | BadRow]:
    """Yield the objects of an array, or the one object that the file is."""
    try:
        found = decode_json(path.read_bytes())
    except ValueError as error:
        why = f"{path}: it is no JSON: {error}; call a file of JSON lines .jsonl"
        raise ConfigurationError([why]) from error
    for row, each in enumerate(found if isinstance(found, list) else [found], start=1):
        yield Record(row, each) if isinstance(each, dict) else BadRow(row, "it is no JSON object")
