"""The files of a data set's splits, and their rows."""

import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pytest

from commands.errors import ConfigurationError
from commands.evaluating.shipped.rows import made_of, read_rows, split_files, text_of
from tests.support.builders.evaluating import write_lines


def save(folder: Path, *rows: object) -> None:
    """Write a folder as `save_to_disk` of the package datasets does."""
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(list(rows))
    file = pa.OSFile(str(folder / "data-0.arrow"), "wb")
    with file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    state = {"_data_files": [{"filename": "data-0.arrow"}]}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")


def test_a_saved_folder_is_read_by_its_splits(tmp_path: Path) -> None:
    """Nested fields are as they were."""
    save(tmp_path / "saved" / "test", {"choices": {"text": ["x"]}}, {"choices": {"text": ["y"]}})
    save(tmp_path / "saved" / "train", {"choices": {"text": ["z"]}})
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')

    rows = read_rows(split_files(tmp_path / "saved", "test"))

    assert [row.fields for row in rows] == [
        {"choices": {"text": ["x"]}},
        {"choices": {"text": ["y"]}},
    ]
    assert rows[1].label == "data-0.arrow:2"
    assert split_files(tmp_path / "saved" / "train", None) == split_files(
        tmp_path / "saved", "train"
    )


def test_files_of_a_folder_are_named_by_their_splits(tmp_path: Path) -> None:
    """As data sets are downloaded; several files are one split."""
    (tmp_path / "data").mkdir()
    for name in ("data/test-00000-of-00002.jsonl", "data/test-00001-of-00002.jsonl", "dev.csv"):
        write_lines(tmp_path / name, {"a": 1})

    assert [file.name for file in split_files(tmp_path, "test")] == [
        "test-00000-of-00002.jsonl",
        "test-00001-of-00002.jsonl",
    ]
    assert [file.name for file in split_files(tmp_path, "dev")] == ["dev.csv"]
    with pytest.raises(ConfigurationError, match=r"there is no split 'x'; the folder has: test, d"):
        split_files(tmp_path, "x")
    with pytest.raises(ConfigurationError, match="name a split; the folder has"):
        split_files(tmp_path, None)


def test_a_row_that_lacks_a_field_has_none_there(tmp_path: Path) -> None:
    """JSON lines leave out what is empty."""
    file = write_lines(tmp_path / "rows.jsonl", {"a": 1}, {"b": 2})

    rows = read_rows([file])

    assert [row.fields for row in rows] == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    """Its other rows would be another data set."""
    file = write_lines(tmp_path / "rows.jsonl", {"a": 1}, "[]")
    empty = write_lines(tmp_path / "empty.jsonl")
    arrow = tmp_path / "rows.arrow"
    arrow.write_bytes(b"no arrow")
    (tmp_path / "state.json").write_text("{}", encoding="utf-8")

    with pytest.raises(ConfigurationError, match=r"rows\.jsonl:2: not a JSON object"):
        read_rows([file])
    with pytest.raises(ConfigurationError, match=r"empty\.jsonl: the file is empty"):
        read_rows([empty])
    with pytest.raises(ConfigurationError, match=r"rows\.arrow: cannot be read as Arrow"):
        read_rows([arrow])
    with pytest.raises(ConfigurationError, match=r"state\.json: cannot be read: KeyError"):
        split_files(tmp_path, None)


def test_of_many_faults_the_first_are_told_and_the_others_counted(tmp_path: Path) -> None:
    """A file of another layout is wrong in every line."""
    rows = read_rows([write_lines(tmp_path / "rows.jsonl", *[{"a": 1}] * 100)])

    with pytest.raises(ConfigurationError) as caught:
        made_of(rows, lambda fields: text_of("word", fields))

    assert caught.value.faults[0] == f"{tmp_path}/rows.jsonl:1: no field 'word'; the fields are a"
    assert caught.value.faults[20:] == ("... and 80 faults more",)


def test_rows_of_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Shards lie in folders of their own, with equal names; no row may stand for another."""
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        files.append(write_lines(tmp_path / folder / "rows.jsonl", {"in": folder}, "", {"n": 2}))
    other = write_lines(tmp_path / "a" / "other.jsonl", {"in": "c"})

    rows = read_rows([*files, other])

    assert [row.label for row in rows] == [
        *(f"{file}:{line}" for file in files for line in (1, 3)),
        "other.jsonl:1",
    ]
    assert rows[-1].place == f"{other}:1"
    with pytest.raises(ConfigurationError, match=r"rows\.jsonl: it is named twice"):
        read_rows([*files, files[0]])
