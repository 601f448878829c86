"""Read the rows of a data set: a file, or a folder that has one file or folder for each split."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from commands.errors import ConfigurationError, first_lines
from commands.importing.formats.files import OpenParquet, records_of
from commands.importing.formats.rows import BadRow, Fields, uncompressed

_SUFFIXES: Final = {".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow"}
Made = TypeVar("Made")


class DataRow(NamedTuple):
    """A row of a data set, and where it is; a field of which the file says nothing is None."""

    label: str  # file:line, different for each row
    fields: Fields
    place: str  # the same with the whole path


def read_rows(paths: Sequence[Path], open_parquet: OpenParquet) -> tuple[DataRow, ...]:
    """Read files as one table: each row has the columns of all.

    Raises:
        ConfigurationError: A file cannot be read, has a bad row or is named twice, or there are no
            rows.
        MissingExtra: A file is Parquet or Arrow, and pyarrow is not installed.
    """
    names = Counter(path.name for path in paths)
    if twice := [path for path, n in Counter(paths).items() if n > 1]:
        raise ConfigurationError([f"{path}: it is named twice" for path in twice])
    rows = [
        row
        for path in paths
        for row in _rows(path, path.name if names[path.name] == 1 else str(path), open_parquet)
    ]
    if not rows:
        raise ConfigurationError([f"{paths[0]}: there are no rows"])
    lacking = dict.fromkeys(name for row in rows for name in row.fields)
    return tuple(row._replace(fields={**lacking, **row.fields}) for row in rows)


def _rows(path: Path, name: str, open_parquet: OpenParquet) -> Iterator[DataRow]:
    """Yield the rows of a file, each labelled with the file's name."""
    faults = []
    for record in records_of(path, None, open_parquet):
        if isinstance(record, BadRow):
            faults.append(f"{path}:{record.line}: {record.why}")
        else:
            line = record.line
            yield DataRow(f"{name}:{line}", record.fields, f"{path}:{line}")
    _require_none(faults)


def _require_none(faults: Sequence[str]) -> None:
    if faults:
        raise ConfigurationError([*first_lines(faults, len(faults), "fault")])


def made_of(rows: Sequence[DataRow], make: Callable[[Fields], Made]) -> Mapping[str, Made]:
    """Return what is made of each row, by its label.

    Raises:
        ConfigurationError: A row has a fault; all are listed, each with its line.
    """
    made, faults = {}, []
    for row in rows:
        try:
            made[row.label] = make(row.fields)
        except ValueError as error:
            faults.append(f"{row.place}: {error}")
    _require_none(faults)
    return made


def split_files(path: Path, split: str | None = None) -> tuple[Path, ...]:
    """Return the files of one split of a data set.

    A folder is what `save_to_disk` of the package datasets wrote, or has files that are named by
    their splits, such as test.jsonl or data/test-00000-of-00001.parquet. Of a file, any split is
    the whole.

    Raises:
        ConfigurationError: There is no such file or split, or the split is not said.
    """
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise ConfigurationError([f"{path}: there is no such file or folder"])
    if (path / "state.json").is_file():
        return _saved_files(path)
    splits = _splits(path)
    if split is None and len(splits) == 1:
        (split,) = splits
    if split not in splits:
        known = ", ".join(splits) or "none"
        why = "name a split" if split is None else f"there is no split {split!r}"
        raise ConfigurationError([f"{path}: {why}; the folder has: {known}"])
    files = splits[split]
    return _saved_files(files[0]) if files[0].is_dir() else files


def _splits(path: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files, or the folder, of each split in a folder."""
    if (path / "dataset_dict.json").is_file():
        return {state.parent.name: (state.parent,) for state in sorted(path.glob("*/state.json"))}
    files = sorted(file for folder in (path, path / "data") for file in folder.glob("*"))
    splits: dict[str, tuple[Path, ...]] = {}
    for file in files:
        if uncompressed(file).suffix in _SUFFIXES:
            name = uncompressed(file).stem.partition("-")[0]
            splits[name] = (*splits.get(name, ()), file)
    return splits


def _saved_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that `save_to_disk` wrote, in order."""
    state = folder / "state.json"
    try:
        listed = json.loads(state.read_text(encoding="utf-8"))["_data_files"]
        return tuple(folder / file["filename"] for file in listed)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError([f"{state}: cannot be read: {error!r}"]) from error
