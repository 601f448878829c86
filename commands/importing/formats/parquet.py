"""Read and write the rows of a Parquet file with pyarrow, batch by batch; read Arrow streams.

Importing this raises MissingExtra where pyarrow is not installed; do so in functions: it is slow.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Final

from commands.errors import ConfigurationError, needs_extra
from commands.importing.formats.rows import Fields, Record, Sheet

with needs_extra("parquet", "pyarrow"):
    import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
    from pyarrow import parquet as pq

_BATCH: Final = 5_000  # rows that are in memory at once
_TYPES: Final = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def open_parquet(path: Path, columns: Collection[str] | None) -> Sheet:
    """Open a Parquet file or an Arrow stream (.arrow), and read the columns that it has of these.

    None: all its columns. `save_to_disk` of the package datasets writes Arrow streams.
    """
    try:
        if path.suffix == ".arrow":
            stream = pa.ipc.open_stream(pa.memory_map(str(path)))
            return Sheet(stream.schema.names, _rows(path, stream))
        file = pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise _unreadable(path, error) from error
    header = file.schema_arrow.names
    names = [name for name in header if columns is None or name in columns]
    return Sheet(header, _rows(path, file.iter_batches(_BATCH, columns=names)))


def _rows(path: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    rows = count(1)
    try:
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                yield Record(next(rows), dict(zip(batch.schema.names, cells, strict=True)))
    except pa.ArrowException as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: pa.ArrowException) -> ConfigurationError:
    kind = "Arrow" if path.suffix == ".arrow" else "Parquet"
    return ConfigurationError([f"{path}: cannot be read as {kind}: {error}"])


def parquet_content(columns: Mapping[str, type], rows: Iterable[Fields]) -> bytes:
    """Return rows as a Parquet file with these columns, by the type of their cells."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns.items()])
    sink, remaining = pa.BufferOutputStream(), iter(rows)
    with pq.ParquetWriter(sink, schema) as writer:
        while batch := list(islice(remaining, _BATCH)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
    return bytes(sink.getvalue().to_pybytes())
