"""The rows of files of every kind."""

import json
from contextlib import suppress
from gzip import compress
from io import BytesIO
from os import mkfifo
from pathlib import Path
from threading import Thread

import pyarrow as pa  # type: ignore[import-untyped]  # it says no types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from commands.backends.wiring import open_parquet, parquet_content
from commands.errors import ConfigurationError
from commands.importing.formats.catalogue import FORMATS, BattleFormat, format_of
from commands.importing.formats.files import columns_of, readable_again, records_of
from commands.importing.formats.plain import read
from commands.importing.formats.rows import BadRow, Fields, Record

TORN = compress(b"a,b\n" * 99, mtime=0)[:-9]
FORMAT = BattleFormat("plain", read, "a table", required=("a",), optional=("b",))


def records(path: Path, content: str | bytes | None = None) -> list[Record | BadRow]:
    """Read a file, which is written first where its content is given."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [*records_of(path, FORMAT, open_parquet)]


def refusal(path: Path, content: str | bytes | None = None) -> str:
    """Return why a file is not read."""
    with pytest.raises(ConfigurationError) as caught:
        records(path, content)
    return str(caught.value)


def write_parquet(path: Path, *rows: Fields) -> Path:
    """Write a Parquet file."""
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def test_a_csv_row_has_the_line_that_it_begins_on(tmp_path: Path) -> None:
    """Conversations hold line breaks; an editor finds a row by its line."""
    found = records(tmp_path / "b.csv", 'a,b\n"x\ny",1\n\nz,2\n')

    assert found == [Record(2, {"a": "x\ny", "b": "1"}), Record(5, {"a": "z", "b": "2"})]


def test_a_csv_of_a_spreadsheet_begins_with_a_mark(tmp_path: Path) -> None:
    """It is no part of the first column's name."""
    assert records(tmp_path / "b.csv", "\ufeffa\nx\n") == [Record(2, {"a": "x"})]


def test_an_apostrophe_before_anything_else_is_part_of_a_cell(tmp_path: Path) -> None:
    """Only the guard of a formula is taken off."""
    found = records(tmp_path / "b.csv", "a,b\n'90s,'=x\n")

    assert found == [Record(2, {"a": "'90s", "b": "=x"})]


def test_a_column_that_nobody_reads_may_be_there_twice(tmp_path: Path) -> None:
    """Spreadsheets leave columns without a name behind."""
    assert records(tmp_path / "b.csv", "a,,\nx,,\n") == [Record(2, {"a": "x", "": ""})]


def test_tabs_may_stand_between_cells(tmp_path: Path) -> None:
    """A comma is then as any other character."""
    found = records(tmp_path / "b.tsv", 'a\tb\nx, y\t"1\t2"\n')

    assert found == [Record(2, {"a": "x, y", "b": "1\t2"})]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv.gz", "a\n1\n"),
        ("b.tsv.gz", "a\tb\n1\t\n"),
        ("b.jsonl.gz", '{"a": "1"}'),
        ("b.json.gz", '[{"a": "1"}]'),
    ],
)
def test_a_compressed_file_is_read_as_it_was(tmp_path: Path, name: str, content: str) -> None:
    """Arenas publish them so."""
    (found,) = records(tmp_path / name, compress(content.encode()))

    assert isinstance(found, Record)
    assert found.fields["a"] == "1"


def test_bytes_that_are_not_utf8_make_no_text(tmp_path: Path) -> None:
    """The row is told by its line where it is needed, and the others are read."""
    found = records(tmp_path / "b.csv", b"a\n1\n\xe9\n2\n")

    assert [each.line for each in found] == [2, 3, 4]
    assert found[1] == Record(3, {"a": "\udce9"})


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    """Python's limit is 131,072 characters, and conversations are longer."""
    (record,) = records(tmp_path / "b.csv", f"a\n{'x' * 200_000}\n")

    assert isinstance(record, Record)
    assert record.fields["a"] == "x" * 200_000


def test_a_csv_row_of_other_length_is_bad(tmp_path: Path) -> None:
    """Filled up, it would say what nobody wrote."""
    found = records(tmp_path / "b.csv", "a,b\nx\ny,1\n")

    assert found == [
        BadRow(2, "it has 1 cells, but the header has 2"),
        Record(3, {"a": "y", "b": "1"}),
    ]


def test_lines_of_json_are_objects_or_bad(tmp_path: Path) -> None:
    """One line that was cut short hides no other."""
    [good, torn, listed, spaced] = records(tmp_path / "b.jsonl", '{"a": 1}\n{"a"\n[1]\n\n{"a": 2}')

    assert (good, spaced) == (Record(1, {"a": 1}), Record(5, {"a": 2}))
    assert isinstance(torn, BadRow)
    assert torn.why.startswith("not JSON: ")
    assert listed == BadRow(3, "not a JSON object")


def test_a_json_file_is_an_array_or_one_object(tmp_path: Path) -> None:
    """AlpacaEval writes the one, and ratings are the other."""
    assert records(tmp_path / "b.json", '[{"a": NaN}, 1]') == [
        Record(1, {"a": None}),
        BadRow(2, "not a JSON object"),
    ]
    assert records(tmp_path / "b.json", '{"a": 1}') == [Record(1, {"a": 1})]


def test_a_number_that_is_infinite_is_not_taken_for_nothing(tmp_path: Path) -> None:
    """Only NaN says that there is no number."""
    assert records(tmp_path / "b.jsonl", '{"a": Infinity}') == [Record(1, {"a": float("inf")})]


@pytest.mark.parametrize("before", ["", "NaN, "])
def test_a_line_that_is_nested_too_deep_is_a_bad_row(tmp_path: Path, before: str) -> None:
    """As any other that is no battle: --skip-bad leaves it out."""
    (found,) = records(tmp_path / "b.jsonl", f"[{before}{'[' * 100_000}")

    assert found == BadRow(1, "not JSON: nested too deeply")


def test_of_a_parquet_file_the_wanted_columns_are_read(tmp_path: Path) -> None:
    """Whole conversations lie beside what is wanted, and would take most of the time."""
    path = write_parquet(tmp_path / "b.parquet", {"a": 1, "c": "long"}, {"a": None, "c": "longer"})

    assert records(path) == [Record(1, {"a": 1}), Record(2, {"a": None})]


def test_a_table_of_another_format_is_refused_at_once(tmp_path: Path) -> None:
    """Else each of its million rows would be called bad."""
    path = write_parquet(tmp_path / "b.parquet", {"x": 1})
    why = "no column 'a', which format plain requires; its columns are 'x'"

    assert refusal(path) == f"{path}: {why}"
    assert refusal(tmp_path / "b.csv", "x\n1\n") == f"{tmp_path / 'b.csv'}: {why}"


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_json_of_another_program_is_refused_at_once(tmp_path: Path, suffix: str) -> None:
    """What is missing was said once a row, and what is there never."""
    path = tmp_path / f"log{suffix}"
    rows = [{"input": "Why?", "target": "So"}, {"input": "Who?", "score": 1}] * 30
    path.write_text("\n".join(map(json.dumps, rows)) if suffix == ".jsonl" else json.dumps(rows))

    why = "no column 'a', which format plain requires; its columns are 'input', 'target', 'score'"
    assert refusal(path) == f"{path}: {why}"


def test_a_field_that_some_rows_lack_is_told_by_their_lines(tmp_path: Path) -> None:
    """They are bad rows, which may be skipped; the file is of the format."""
    text = '{"x": 1}\n' * 5 + '{"a": 1}\n'

    assert len(records(tmp_path / "b.jsonl", text)) == 6


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        (("model", "judge", "games"), "it looks like --from arena-hard"),
        (("question_id", "model_a", "model_b", "winner", "judge"), ""),
        (
            ("instruction", "generator_1", "generator_2", "preference"),
            "it looks like --from alpaca-eval",
        ),
        (
            ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"),
            "it looks like --from mt-bench",
        ),
        (("arena", "ratings"), "use `tourney import elo-ratings`"),
        (
            ("question_id", "model", "judge", "score"),
            "are 'question_id', 'model', 'judge', 'score'",
        ),
    ],
)
def test_a_file_of_another_format_is_told_which(
    tmp_path: Path, fields: tuple[str, ...], hint: str
) -> None:
    """Who forgot --from need not look it up."""
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(dict.fromkeys(fields, "x")))

    def read_plain() -> None:
        [*records_of(path, FORMATS["plain"], open_parquet)]

    if not hint:
        read_plain()
        return
    with pytest.raises(ConfigurationError, match=f"no column .*{hint}$"):
        read_plain()


_VOTE = ("model_a", "model_b", "winner")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (_VOTE, "plain"),
        ((*_VOTE, "id", "judge", "question_id", "pref", "language"), "plain"),
        (
            ("id", "model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie"),
            "lmarena-55k",
        ),
        ((*_VOTE, "question_id", "judge", "turn", "tstamp", "conv_metadata"), "lmarena-100k"),
        ((*_VOTE, "judge", "turn", "anony"), "lmarena-100k"),
        ((*_VOTE, "id", "evaluation_session_id", "conv_metadata"), "lmarena-140k"),
        ((*_VOTE, "question_id", "judge", "conversation_a", "turn"), "mt-bench"),
        (("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"), "mt-bench"),
        (("uid", "model", "judge", "games"), "arena-hard"),
        (("instruction", "generator_1", "generator_2", "preference"), "alpaca-eval"),
        (("cache_key", "verdict", "metadata"), "tap"),
        (("dimension", "inconsistent", "raw"), "tap"),
        (("prompt_id", "entrant_a", "entrant_b", "outcome", "raw"), "verdicts"),
        (("speech", "unknown"), "plain"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_columns_tell_the_format(
    tmp_path: Path, fields: tuple[str, ...], name: str, suffix: str
) -> None:
    """Nobody need look up what a file of votes is called; what no columns tell is a plain table."""
    path = tmp_path / f"b{suffix}"
    row = json.dumps(dict.fromkeys(fields, "x"))
    match suffix:
        case ".parquet":
            path.write_bytes(parquet_content(dict.fromkeys(fields, str), [json.loads(row)]))
        case ".csv":
            path.write_text(",".join(fields))
        case _:
            path.write_text(f"[{row}]" if suffix == ".json" else row)

    assert format_of(columns_of(path, open_parquet)).name == name


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.json", "b.jsonl", "piped", "b.csv.gz"])
def test_a_table_of_utf_16_is_called_that(tmp_path: Path, name: str, encoding: str) -> None:
    """Excel saves so as `Unicode text`; its columns were shown as half surrogates."""
    content = '{"a": 1}'.encode(encoding) if "json" in name else "a\n1\n".encode(encoding)

    refused = refusal(tmp_path / name, compress(content) if name.endswith(".gz") else content)

    assert refused == f"{tmp_path / name}: cannot be read: it is UTF-16; save it as UTF-8"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (
            "b.xlsx",
            "",
            "the suffix is '.xlsx', but must be .csv, .tsv, .json, .jsonl (or one of them",
        ),
        ("b.parquet.gz", "", "the suffix is '.gz', but must be .csv"),
        ("b.csv.gz", "a,b\n", "cannot be read: Not a gzipped file"),
        ("b.csv.gz", TORN, "cannot be read: Compressed file ended before"),
        ("b.csv", "a,b,c,b,c\n", "there are 2 columns 'b'; rename all but the one to read"),
        ("b.csv", "", "the file is empty"),
        ("b.csv.gz", compress(b"", mtime=0), "the file is empty"),
        ("b.json", "\ufeff\n", "the file is empty"),
        ("b.parquet", "", "the file is empty"),
        ("piped", "", "the file is empty"),
        ("b.csv", None, "cannot be read: [Errno 2] No such file"),
        ("b.json", '{"a": 1}\n{"a": 2}', "name a file of JSON lines .jsonl"),
        ("b.json", "[" * 100_000, "not JSON: nested too deeply"),
        ("b.parquet", "PAR", "cannot be read as Parquet: "),
        ("b.parquet", None, "cannot be read: [Errno 2]"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, content: str | bytes | None, why: str
) -> None:
    """One line, and no traceback of somebody else's library."""
    refused = refusal(tmp_path / name, content)

    assert refused.startswith(f"{tmp_path / name}: ")
    assert why in refused


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_parquet_file_with_a_damaged_byte_is_read_or_refused(
    tmp_path: Path, data: st.DataObject
) -> None:
    """Its library knows many errors, and a user one."""
    path = write_parquet(tmp_path / "b.parquet", *({"a": f"entrant {n}"} for n in range(500)))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)

    with suppress(ConfigurationError):
        records(path)


@pytest.mark.parametrize("header", ["a;b", '"a";"b"', '"a,c,d";b;a'])
def test_a_spreadsheet_may_separate_cells_by_semicolons(tmp_path: Path, header: str) -> None:
    """Where a comma is for decimals, it does; what is quoted separates nothing."""
    cells = "x;1,5;x" if header.count(";") > 1 else "x;1,5"

    (found,) = records(tmp_path / "b.csv", f"{header}\n{cells}\n")

    assert isinstance(found, Record)
    assert (found.fields["a"], found.fields["b"]) == ("x", "1,5")


def test_a_row_that_is_not_csv_is_bad(tmp_path: Path) -> None:
    """A quote that nobody closes takes in all that follows, and the rows before it stand."""
    assert records(tmp_path / "b.csv", 'a\nx\n"y\nz\n') == [
        Record(2, {"a": "x"}),
        BadRow(3, "not CSV: unexpected end of data"),
    ]
    assert records(tmp_path / "b.csv", '"a\n') == [BadRow(1, "not CSV: unexpected end of data")]


def test_json_may_begin_with_a_mark(tmp_path: Path) -> None:
    """Editors on Windows write it, and it is no part of the first row."""
    assert records(tmp_path / "b.jsonl", '\ufeff{"a": 1}\n') == [Record(1, {"a": 1})]
    assert records(tmp_path / "b.json", '\ufeff[{"a": 1}]') == [Record(1, {"a": 1})]


PARQUET = BytesIO()
pq.write_table(pa.Table.from_pylist([{"a": "1"}]), PARQUET)


@pytest.mark.parametrize(
    "content",
    [
        b"a\n1\n",
        b"b\ta\n2\t1\n",
        b'\xef\xbb\xbf{"a": "1"}\n',
        b'{\n  "a": "1"\n}',
        b'[{"a": "1"}]',
        compress(b'{"a": "1"}', mtime=0),
        PARQUET.getvalue(),
    ],
)
def test_a_pipe_is_read_by_its_content(tmp_path: Path, content: bytes) -> None:
    """It has no suffix, and can be read once only; what is read is a copy."""
    pipe = tmp_path / "pipe"
    mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(content,))
    writer.start()

    with readable_again(pipe) as copy:
        found = [[*records_of(pipe, FORMAT, open_parquet, content=copy)] for _ in range(2)]
    writer.join()

    assert [each.fields["a"] for (each,) in found if isinstance(each, Record)] == ["1", "1"]
    assert not copy.exists()


def test_a_file_is_read_where_it_lies(tmp_path: Path) -> None:
    """A million battles are not copied."""
    file = tmp_path / "b.csv"
    file.touch()

    with readable_again(file) as found:
        assert found == file


def test_what_is_not_there_has_no_copy(tmp_path: Path) -> None:
    """It is named."""
    with (
        pytest.raises(ConfigurationError, match="none: cannot be read: No such file"),
        readable_again(tmp_path / "none"),
    ):
        pass
