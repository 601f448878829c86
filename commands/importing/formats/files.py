"""Read the rows of a CSV, TSV, JSON, JSON lines or Parquet file, chosen by the file's suffix.

What has no suffix, as a pipe, is chosen by its content. Rows are read one at a time, except from a
JSON file, which is read whole. All but Parquet may be compressed by gzip. Bytes that are not UTF-8
make half surrogates, which no field of a battle may have: so the row that has them is the bad one.
"""

import csv
import gzip
import json
import re
import shutil
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NamedTuple, Self, TypeAlias

import msgspec

from commands.errors import ConfigurationError
from commands.importing.formats.catalogue import FORMATS, BattleFormat
from commands.importing.formats.rows import BadRow, Record, Sheet
from commands.settings.toml import UTF16
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


_N_AHEAD: Final = 20  # rows of JSON that are looked at before any is read


def decode_json(content: bytes) -> object:
    """Decode JSON, with None for NaN; editors on Windows put a mark before it.

    Raises:
        ValueError: The content is not JSON, or nested too deeply.
    """
    try:
        return _decode_with_nan(content.removeprefix(BOM_UTF8))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _decode_with_nan(content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except ValueError:
        return json.loads(content, parse_constant=_constant)


def _constant(name: str) -> float | None:
    return None if name == "NaN" else float(name)


OpenParquet: TypeAlias = Callable[[Path, Collection[str] | None], Sheet]
"""Opens a Parquet file, or a stream of Arrow, and reads some columns, or all."""


class _File(NamedTuple):
    """A file as messages name it, where its content lies, and what that is."""

    path: Path
    content: Path
    suffixes: Sequence[str]

    @classmethod
    def of(cls, path: Path, content: Path) -> Self:
        """Tell what a file holds, by its suffixes, or by its content if it has none."""
        suffixes = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
        return cls(path, content, suffixes or _suffixes_of(content))

    def require_utf8(self) -> None:
        """Refuse a table in UTF-16, whose first two bytes are its mark or hold one NUL.

        Raises:
            ConfigurationError: It is UTF-16.
        """
        if self.suffixes[-1] in {".parquet", ".arrow"}:
            return
        with self.open() as opened:
            begin = opened.read(2)
        if begin in {BOM_UTF16_LE, BOM_UTF16_BE} or begin.count(0) == 1:
            raise ConfigurationError([f"{self.path}: {UTF16}"])

    def open(self) -> BufferedReader | gzip.GzipFile:
        """Open it, uncompressed."""
        return gzip.open(self.content) if self.suffixes[-1] == ".gz" else self.content.open("rb")


_FIRST_BYTES: Final = 2**20  # of a file whose name does not say what it is


def _suffixes_of(content: Path) -> Sequence[str]:
    """Return the suffixes that a file would have, by how it begins."""
    with content.open("rb") as opened:
        begin = opened.read(4)
    if begin == b"PAR1":
        return [".parquet"]
    if begin.startswith(b"\x1f\x8b"):
        with gzip.open(content) as opened:
            return [_kind_of(opened.read(_FIRST_BYTES)), ".gz"]
    with content.open("rb") as opened:
        return [_kind_of(opened.read(_FIRST_BYTES))]


def _kind_of(begin: bytes) -> str:
    text = begin.removeprefix(BOM_UTF8).lstrip()
    if text.startswith(b"{"):
        first_line = text.partition(b"\n")[0].strip()
        return ".jsonl" if len(first_line) > 1 else ".json"
    return ".json" if text.startswith(b"[") else ".csv"


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Name the file whose bytes cannot be read.

    Raises:
        ConfigurationError: The system refuses it, or it is no whole .gz file.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def columns_of(
    path: Path, open_parquet: OpenParquet, *, content: Path | None = None
) -> Collection[str]:
    """Return the columns of a table, or the fields of the first rows of JSON.

    Args:
        path: The file, as messages name it.
        open_parquet: Opens a Parquet file.
        content: Where the bytes lie; None: in the file.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    with _unpacking(path):
        file = _File.of(path, content or path)
        file.require_utf8()
        match file.suffixes:
            case [".csv" | ".tsv", *_]:
                with _text(file) as lines:
                    return csv_sheet(lines).header
            case [".parquet" | ".arrow"]:
                return open_parquet(file.content, ()).header
            case [".jsonl", *_]:
                return _fields(islice(_json_lines(file), _N_AHEAD))
            case [".json", *_]:
                return _fields(islice(_json_rows(file), _N_AHEAD))
    return ()  # `records_of` refuses it


def _fields(rows: Iterable[Record | BadRow]) -> Collection[str]:
    """Return the names of the fields that any row has."""
    return dict.fromkeys(name for row in rows if isinstance(row, Record) for name in row.fields)


def records_of(
    path: Path, of: BattleFormat | None, open_parquet: OpenParquet, *, content: Path | None = None
) -> Iterator[Record | BadRow]:
    """Yield the rows of a file: the columns of a format, or all.

    Args:
        path: The file, as messages name it.
        of: The format; None: all columns are read.
        open_parquet: Opens a Parquet file.
        content: Where the bytes lie; None: in the file.

    Raises:
        ConfigurationError: The file cannot be read, has an unknown suffix, or lacks a column that
            the format requires.
    """
    with _unpacking(path):
        file = _File.of(path, content or path)
        file.require_utf8()
        match file.suffixes:
            case [".csv" | ".tsv", *_]:
                yield from _csv_rows(file, of)
            case [".parquet" | ".arrow"]:
                columns = None if of is None else {*of.columns}
                yield from _with_header(path, of, open_parquet(file.content, columns))
            case [".jsonl", *_]:
                yield from _with_fields(path, of, _json_lines(file))
            case [".json", *_]:
                yield from _with_fields(path, of, _json_rows(file))
            case _:
                kinds = ".csv, .tsv, .json, .jsonl (or one of them with .gz) or .parquet"
                suffix = path.suffix
                fault = f"{path}: the suffix is {suffix!r}, but must be {kinds}; rename the file"
                raise ConfigurationError([fault])


def _csv_rows(file: _File, of: BattleFormat | None) -> Iterator[Record | BadRow]:
    with _text(file) as lines:
        yield from _with_header(file.path, of, csv_sheet(lines))


def _text(file: _File) -> TextIOWrapper:
    return TextIOWrapper(file.open(), "utf-8-sig", "surrogateescape", newline="")


def _with_header(path: Path, of: BattleFormat | None, sheet: Sheet) -> Iterator[Record | BadRow]:
    """Yield a table's rows, after checking that each column to read is there, and only once."""
    if of is None:
        faults = [*_doubled(sheet.header, sheet.header)]
    else:
        faults = [*_lacking(of, sheet.header)]
        faults += _doubled(of.columns, sheet.header)
    if faults:
        raise ConfigurationError([f"{path}: {each}" for each in faults])
    yield from sheet.rows


def _with_fields(
    path: Path, of: BattleFormat | None, rows: Iterator[Record | BadRow]
) -> Iterator[Record | BadRow]:
    """Yield the rows of JSON, after checking that the first ones have each field to read.

    Raises:
        ConfigurationError: None of them has one of these: they are of another program.
    """
    first = [*islice(rows, _N_AHEAD)]
    fields = _fields(first)
    if of is not None and fields and (faults := [*_lacking(of, [*fields])]):
        raise ConfigurationError([f"{path}: {each}" for each in faults])
    yield from chain(first, rows)


def _lacking(of: BattleFormat, header: Sequence[str]) -> Iterator[str]:
    """Yield which columns of a format are missing, and which other format has those there are."""
    if missing := of.missing_from(header):
        need = f"which format {of.name} requires; its columns are {', '.join(map(repr, header))}"
        likely = [each.name for each in FORMATS.values() if each.is_likely(header)]
        hint = f"; it looks like --from {' or '.join(likely)}" if likely else ""
        if "ratings" in header:
            hint = "; these are ratings, not battles; use `tourney import elo-ratings`"
        yield f"no column {' or '.join(map(repr, missing))}, {need}{hint}"


def _doubled(names: Collection[str], header: Sequence[str]) -> Iterator[str]:
    for name, n in Counter(header).items():
        if n > 1 and name in names:
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
    _, header = next(rows, (1, []))
    if isinstance(header, csv.Error):
        header = []
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


def _json_lines(file: _File) -> Iterator[Record | BadRow]:
    with file.open() as opened:
        for line, content in enumerate(opened, start=1):
            if not content.isspace():
                yield _json_record(line, content)


def _json_record(line: int, content: bytes) -> Record | BadRow:
    try:
        found = decode_json(content)
    except ValueError as error:
        return BadRow(line, f"not JSON: {error}")
    return Record(line, found) if isinstance(found, dict) else BadRow(line, "not a JSON object")


def _json_rows(file: _File) -> Iterator[Record | BadRow]:
    """Yield the objects of a JSON array, or a single object."""
    try:
        with file.open() as opened:
            found = decode_json(opened.read())
    except ValueError as error:
        why = f"{file.path}: not JSON: {error}; name a file of JSON lines .jsonl"
        raise ConfigurationError([why]) from error
    for row, each in enumerate(found if isinstance(found, list) else [found], start=1):
        yield Record(row, each) if isinstance(each, dict) else BadRow(row, "not a JSON object")
