"""Read the rows of a CSV, TSV, JSON, JSON lines or Parquet file, chosen by the file's suffix.

What has no suffix, as a pipe, is chosen by its content. Rows are read one at a time, except from a
JSON file, which is read whole. All but Parquet may be compressed by gzip. Bytes that are not UTF-8
make half surrogates, which no field of a battle may have: so the row that has them is the bad one.
"""

import csv
import gzip
import json
import math
import re
import shutil
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import msgspec

from commands.errors import ConfigurationError
from commands.importing.formats.catalogue import format_of
from commands.importing.formats.rows import (
    BadRow,
    BattleFormat,
    Record,
    Sheet,
    is_unicode,
    shorten,
    uncompressed,
)
from commands.settings.toml import UTF16
from projections.artifacts.escaping import unguarded


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file that cannot be read.

    Raises:
        ConfigurationError: The system refuses it, or it is no whole .gz file.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError([f"{path}: cannot be read: {why}"]) from error


@contextmanager
def readable_again(path: Path) -> Iterator[Path]:
    """Give a file that can be read several times: of a pipe, a copy that goes at the end.

    Raises:
        ConfigurationError: It cannot be read.
    """
    if path.is_file():
        yield path
        return
    with NamedTemporaryFile(prefix="tourney-") as copy:
        with reading(path), path.open("rb") as pipe:
            shutil.copyfileobj(pipe, copy)
            copy.flush()
        yield Path(copy.name)


def decode_json(content: bytes) -> object:
    """Decode JSON, with None for NaN; editors on Windows put a mark before it.

    Raises:
        ValueError: The content is not JSON, or nested too deeply.
    """
    content = content.removeprefix(BOM_UTF8)
    try:
        with suppress(ValueError):  # it is strict: NaN is none of its numbers
            return msgspec.json.decode(content)
        return json.loads(content, parse_constant=lambda name: _CONSTANTS[name])
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


_CONSTANTS: Final = {"NaN": None, "Infinity": math.inf, "-Infinity": -math.inf}


_TEXTS: Final = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_BINARY: Final = (".parquet", ".arrow")
_FIRST_BYTES: Final = 2**20  # of a file whose name does not say what it is


def _kind_of(path: Path, content: Path) -> tuple[str, bool]:
    """Tell what a file holds, by its suffix, or by its content if it has none; and if it is packed.

    Raises:
        ConfigurationError: Its suffix is unknown, or it is empty or a table in UTF-16, whose first
            two bytes are its mark or hold one NUL.
    """
    named = uncompressed(path).suffix
    is_packed = _is_gzip(content) if not path.suffix else path.suffix == ".gz"
    if path.suffix and named not in _TEXTS and not (named in _BINARY and not is_packed):
        kinds = ".csv, .tsv, .json, .jsonl (or one of them with .gz) or .parquet"
        fault = f"{path}: the suffix is {path.suffix!r}, but must be {kinds}; save it as one"
        raise ConfigurationError([fault])
    with _uncompressed(content, is_packed=is_packed) as opened:
        begin = opened.read(_FIRST_BYTES)
    if not begin.removeprefix(BOM_UTF8).strip():
        raise ConfigurationError([f"{path}: the file is empty"])
    kind = named or _suffix_of(begin)
    is_utf16 = begin[:2] in {BOM_UTF16_LE, BOM_UTF16_BE} or begin[:2].count(0) == 1
    if is_utf16 and kind in _TEXTS:
        raise ConfigurationError([f"{path}: {UTF16}"])
    if kind in _TEXTS and _is_binary(begin):
        raise ConfigurationError([f"{path}: it is not a text, and must be a table; name another"])
    return kind, is_packed


def _is_gzip(content: Path) -> bool:
    with content.open("rb") as opened:
        return opened.read(2) == b"\x1f\x8b"


def _uncompressed(content: Path, *, is_packed: bool) -> BufferedReader | gzip.GzipFile:
    return gzip.open(content) if is_packed else content.open("rb")


def _suffix_of(begin: bytes) -> str:
    """Return the suffix that a file would have, by how it begins."""
    if begin.startswith(b"PAR1"):
        return ".parquet"
    text = begin.removeprefix(BOM_UTF8).lstrip()
    if text.startswith(b"{"):
        first_line = text.partition(b"\n")[0].strip()
        return ".jsonl" if len(first_line) > 1 else ".json"
    return ".json" if text.startswith(b"[") else ".csv"


def _is_binary(begin: bytes) -> bool:
    """Say whether a file begins as no text does; a text may have a NUL, or another encoding."""
    try:
        getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError:
        return b"\0" in begin
    return False


def columns_of(path: Path, *, content: Path | None = None) -> Collection[str]:
    """Return the columns of a table, or the fields of the first rows of JSON.

    Raises:
        ConfigurationError: The file cannot be read, is empty, or has an unknown suffix.
    """
    with _opened(path, content or path, ()) as sheet:
        return sheet.header


def _not_unicode(path: Path, header: Iterable[str], records: Iterable[Record]) -> Iterator[str]:
    for name in header:
        if not is_unicode(name):
            yield f"{path}:1: column {shorten(name)} is not UTF-8; save the file as UTF-8"
    for record in records:
        for name, text in record.fields.items():
            if isinstance(text, str) and not is_unicode(text):
                why = f"{name} is {shorten(text)}, which is not UTF-8"
                yield f"{path}:{record.line}: {why}; save the file as UTF-8"


def records_of(
    path: Path, of: BattleFormat | None, *, content: Path | None = None
) -> Iterator[Record | BadRow]:
    """Yield the rows of a file: the columns of a format, or all.

    Messages name the file by its path; its bytes may lie elsewhere, in `content`.

    Raises:
        ConfigurationError: The file cannot be read, is empty, has an unknown suffix, or lacks a
            column that the format requires.
    """
    columns = None if of is None else of.columns
    with _opened(path, content or path, columns) as sheet:
        faults = [*doubled(columns, sheet.header)]
        if of is not None and sheet.header:
            faults += _lacking(of, sheet.header)
        if faults:
            raise ConfigurationError([f"{path}: {fault}" for fault in faults])
        yield from sheet.rows


def table_of(path: Path, *, content: Path) -> tuple[Sequence[str], Sequence[Record | BadRow]]:
    """Return all columns of a file, in the order in which they come, and its rows.

    Raises:
        ConfigurationError: As `records_of`, but columns may be there twice.
    """
    with _opened(path, content, None) as sheet:
        rows = [*sheet.rows]
        records = [row for row in rows if isinstance(row, Record)]
        if (fault := next(_not_unicode(path, sheet.header, records), None)) is not None:
            raise ConfigurationError([fault])  # such a file has many
        found = dict.fromkeys(name for record in records for name in record.fields)
        return [*sheet.header, *(name for name in found if name not in sheet.header)], rows


@contextmanager
def _opened(path: Path, content: Path, columns: Collection[str] | None) -> Iterator[Sheet]:
    """Open a file as a table; of Parquet some columns are read, or all."""
    with reading(path):
        kind, is_packed = _kind_of(path, content)
        if kind in _BINARY:
            from commands.importing.formats.parquet import open_parquet  # noqa: PLC0415  # pyarrow is slow

            yield open_parquet(content, columns)
            return
        with _uncompressed(content, is_packed=is_packed) as opened:
            if kind in {".csv", ".tsv"}:
                with TextIOWrapper(opened, "utf-8-sig", "surrogateescape", newline="") as text:
                    yield csv_sheet(text)
            elif kind == ".json":
                yield _json_sheet(_json_rows(path, opened.read()))
            else:
                yield _json_sheet(_json_lines(opened))


def _lacking(of: BattleFormat, header: Sequence[str]) -> Iterator[str]:
    """Yield which columns of a format are missing, and which other format has those there are."""
    if missing := of.missing_from(header):
        need = f"which format {of.name} requires; its columns are {', '.join(map(repr, header))}"
        likely = format_of(header)
        hint = "" if likely.missing_from(header) else f"; it looks like --layout {likely.name}"
        if "ratings" in header:
            hint = "; these are ratings, not battles; use `tourney import elo-ratings`"
        yield f"no column {' or '.join(map(repr, missing))}, {need}{hint}"


def doubled(names: Collection[str] | None, header: Sequence[str]) -> Iterator[str]:
    """Yield which of the columns to read, or of all, are there twice."""
    for name, n in Counter(header).items():
        if n > 1 and (names is None or name in names):
            yield f"there are {n} columns {name!r}; rename all but the one to read"


_LONGEST_CELL: Final = 2**31 - 1  # characters; conversations exceed csv's default
_SEPARATORS: Final = ",;\t"
_QUOTED: Final = re.compile(r'"[^"]*("|$)')


def csv_sheet(lines: Iterable[str]) -> Sheet:
    """Return the header and the rows of CSV; what stands between its cells, the header tells.

    Args:
        lines: With their line ends as they are.
    """
    rest = iter(lines)
    first = next(rest, "")
    rows = _cells(chain([first], rest), _separator(first))
    line, header = next(rows, (1, []))
    if isinstance(header, csv.Error):
        return Sheet([], iter([BadRow(line, f"not CSV: {header}")]))
    return Sheet(header, (_csv_record(line, header, cells) for line, cells in rows))


def _separator(header: str) -> str:
    bare = _QUOTED.sub("", header)
    return max(_SEPARATORS, key=bare.count)


def _cells(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """Yield each row, or why it is none, with the number of its first line."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(lines, strict=True, delimiter=separator)
    line = 1
    while True:
        try:
            cells: list[str] | csv.Error = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = error
        if cells:  # else the line is empty
            yield line, cells
        line = reader.line_num + 1


def _csv_record(line: int, header: Sequence[str], cells: list[str] | csv.Error) -> Record | BadRow:
    if isinstance(cells, csv.Error):
        return BadRow(line, f"not CSV: {cells}")
    if len(cells) != len(header):
        return BadRow(line, f"it has {len(cells)} cells, but the header has {len(header)}")
    return Record(line, dict(zip(header, map(unguarded, cells), strict=True)))


_N_AHEAD: Final = 20  # rows of JSON that are looked at before any is read


def _json_sheet(rows: Iterator[Record | BadRow]) -> Sheet:
    """Return rows of JSON under the fields that any of the first ones has."""
    first = [*islice(rows, _N_AHEAD)]
    fields = dict.fromkeys(name for row in first if isinstance(row, Record) for name in row.fields)
    return Sheet([*fields], chain(first, rows))


def _json_lines(lines: Iterable[bytes]) -> Iterator[Record | BadRow]:
    for line, content in enumerate(lines, start=1):
        if not content.isspace():
            yield _json_record(line, content)


def _json_record(line: int, content: bytes) -> Record | BadRow:
    try:
        found = decode_json(content)
    except ValueError as error:
        return BadRow(line, f"not JSON: {error}")
    return Record(line, found) if isinstance(found, dict) else BadRow(line, "not a JSON object")


def _json_rows(path: Path, content: bytes) -> Iterator[Record | BadRow]:
    """Yield the objects of a JSON array, or a single object."""
    try:
        found = decode_json(content)
    except ValueError as error:
        why = f"{path}: not JSON: {error}; name a file of JSON lines .jsonl"
        raise ConfigurationError([why]) from error
    for row, value in enumerate(found if isinstance(found, list) else [found], start=1):
        yield Record(row, value) if isinstance(value, dict) else BadRow(row, "not a JSON object")
