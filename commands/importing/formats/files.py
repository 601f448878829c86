"""Read the rows of a CSV, TSV, JSON, JSON lines or Parquet file, chosen by the file's suffix.

Rows are read one at a time, except from a JSON file, which is read whole. All but Parquet may be
compressed by gzip. Bytes that are not UTF-8 make half surrogates, which no field of a battle may
have: so the row that has them is the bad one.
"""

import csv
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from commands.errors import ConfigurationError
from commands.importing.formats.catalogue import BattleFormat, uncompressed
from commands.importing.formats.rows import BadRow, Record
from projections.artifacts.escaping import unguarded


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file that cannot be read.

    Raises:
        ConfigurationError: The system refuses it.
    """
    try:
        yield
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from error


def decode_json(content: bytes) -> object:
    """Decode JSON, with None for NaN.

    Raises:
        ValueError: The content is not JSON, or nested too deeply.
    """
    try:
        return _decode_with_nan(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _decode_with_nan(content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except ValueError:
        return json.loads(content, parse_constant=_constant)


def _constant(name: str) -> float | None:
    return None if name == "NaN" else float(name)


_LONGEST_CELL: Final = 2**31 - 1  # characters; conversations exceed csv's default


class Sheet(NamedTuple):
    """A table's column names and rows."""

    header: Sequence[str]
    rows: Iterator[Record | BadRow]


OpenParquet: TypeAlias = Callable[[Path, Collection[str] | None], Sheet]
"""Opens a Parquet file, or a stream of Arrow, and reads some columns, or all."""


def records_of(
    path: Path, of: BattleFormat | None, open_parquet: OpenParquet
) -> Iterator[Record | BadRow]:
    """Yield the rows of a file: the columns of a format, or all.

    Raises:
        ConfigurationError: The file cannot be read, has an unknown suffix, or lacks a column that
            the format requires.
    """
    try:
        match uncompressed(path).suffix:
            case ".csv":
                yield from _with_header(path, of, _open_csv(path, ","))
            case ".tsv":
                yield from _with_header(path, of, _open_csv(path, "\t"))
            case ".parquet" | ".arrow" if path.suffix != ".gz":
                columns = None if of is None else {*of.required, *of.optional}
                yield from _with_header(path, of, open_parquet(path, columns))
            case ".jsonl":
                yield from _json_lines(path)
            case ".json":
                yield from _json_rows(path)
            case _:
                kinds = ".csv, .tsv, .json, .jsonl (or one of them with .gz) or .parquet"
                suffix = path.suffix
                fault = f"{path}: the suffix is {suffix!r}, but must be {kinds}; rename the file"
                raise ConfigurationError([fault])
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def _open(path: Path) -> BufferedReader | gzip.GzipFile:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _with_header(path: Path, of: BattleFormat | None, sheet: Sheet) -> Iterator[Record | BadRow]:
    """Yield a table's rows, after checking that each column to read is there, and only once."""
    if of is None:
        faults = [*_doubled(sheet.header, sheet.header)]
    else:
        faults = [*_lacking(of, sheet.header)]
        faults += _doubled((*of.required, *of.optional), sheet.header)
    if faults:
        raise ConfigurationError([f"{path}: {each}" for each in faults])
    yield from sheet.rows


def _lacking(of: BattleFormat, header: Sequence[str]) -> Iterator[str]:
    for name in of.required:
        if name not in header:
            yield (
                f"no column {name!r}, which format {of.name} requires; its columns are"
                f" {', '.join(map(repr, header))}"
            )


def _doubled(names: Collection[str], header: Sequence[str]) -> Iterator[str]:
    for name, n in Counter(header).items():
        if n > 1 and name in names:
            yield f"there are {n} columns {name!r}; rename all but the one to read"


def _open_csv(path: Path, delimiter: str) -> Sheet:
    rows = _csv_rows(path, delimiter)
    _, header = next(rows, (1, []))
    return Sheet(header, (_csv_record(line, header, cells) for line, cells in rows))


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file, each with the number of its first line."""
    csv.field_size_limit(_LONGEST_CELL)
    with TextIOWrapper(_open(path), "utf-8-sig", "surrogateescape", newline="") as opened:
        reader = csv.reader(opened, delimiter=delimiter)
        line = 1
        for cells in reader:
            if cells:  # else the line is empty
                yield line, cells
            line = reader.line_num + 1


def _csv_record(line: int, header: list[str], cells: list[str]) -> Record | BadRow:
    if len(cells) != len(header):
        return BadRow(line, f"it has {len(cells)} cells, but the header has {len(header)}")
    return Record(line, dict(zip(header, map(unguarded, cells), strict=True)))


def _json_lines(path: Path) -> Iterator[Record | BadRow]:
    with _open(path) as opened:
        for line, content in enumerate(opened, start=1):
            if not content.isspace():
                yield _json_record(line, content)


def _json_record(line: int, content: bytes) -> Record | BadRow:
    try:
        found = decode_json(content)
    except ValueError as error:
        return BadRow(line, f"not JSON: {error}")
    return Record(line, found) if isinstance(found, dict) else BadRow(line, "not a JSON object")


def _json_rows(path: Path) -> Iterator[Record | BadRow]:
    """Yield the objects of a JSON array, or a single object."""
    try:
        with _open(path) as opened:
            found = decode_json(opened.read())
    except ValueError as error:
        why = f"{path}: not JSON: {error}; name a file of JSON lines .jsonl"
        raise ConfigurationError([why]) from error
    for row, each in enumerate(found if isinstance(found, list) else [found], start=1):
        yield Record(row, each) if isinstance(each, dict) else BadRow(row, "not a JSON object")
