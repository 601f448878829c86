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

from commands.errors import ConfigurationError
from commands.importing.formats.catalogue import FORMATS, format_of
from commands.importing.formats.files import columns_of, readable_again, records_of
from commands.importing.formats.parquet import parquet_content
from commands.importing.formats.plain import PLAIN
from commands.importing.formats.rows import BadRow, BattleFormat, Fields, Record

TORN = compress(b"a,b\n" * 99, mtime=0)[:-9]
FORMAT = BattleFormat("plain", PLAIN.read, "a table", required=("a",), optional=("b",))


def records(path: Path, content: str | bytes | None = None) -> list[Record | BadRow]:
    """Read a file, which is written first where its content is given."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [*records_of(path, FORMAT)]


def refusal(path: Path, content: str | bytes | None = None) -> str:
    """Return why a file is not read."""
    with pytest.raises(ConfigurationError) as caught:
        records(path, content)
    return str(caught.value)


def write_parquet(path: Path, *rows: Fields) -> Path:
    """Write a Parquet file."""
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


X, A1 = Record(2, {"a": "x"}), Record(1, {"a": 1})
TORN_QUOTE = "not CSV: unexpected end of data"


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        pytest.param(
            *("b.csv", 'a,b\n"x\ny",1\n\nz,2\n'),
            [Record(2, {"a": "x\ny", "b": "1"}), Record(5, {"a": "z", "b": "2"})],
            id="a row of CSV has the line that it begins on",
        ),
        pytest.param("b.csv", "\ufeffa\nx\n", [X], id="the mark of a spreadsheet is no name"),
        pytest.param(
            *("b.csv", "a,b\n'90s,'=x\n", [Record(2, {"a": "'90s", "b": "=x"})]),
            id="of apostrophes only the guard of a formula is taken off",
        ),
        pytest.param(
            *("b.csv", "a,,\nx,,\n", [Record(2, {"a": "x", "": ""})]),
            id="a column that nobody reads may be there twice",
        ),
        pytest.param(
            *("b.tsv", 'a\tb\nx, y\t"1\t2"\n', [Record(2, {"a": "x, y", "b": "1\t2"})]),
            id="between tabs a comma is as any other character",
        ),
        pytest.param(
            "b.csv",
            b"a\n1\n\xe9\n2\n",
            [Record(n, {"a": cell}) for n, cell in ((2, "1"), (3, "\udce9"), (4, "2"))],
            id="bytes that are not UTF-8 make no text",
        ),
        pytest.param(
            *("b.csv", f"a\n{'x' * 200_000}\n", [Record(2, {"a": "x" * 200_000})]),
            id="a cell may be longer than the csv module's limit",
        ),
        pytest.param(
            *("b.csv", "a,b\nx\ny,1\n"),
            [
                BadRow(2, "it has 1 cells, but the header has 2"),
                Record(3, {"a": "y", "b": "1"}),
            ],
            id="a row of another length is bad",
        ),
        pytest.param(
            *("b.csv", 'a\nx\n"y\nz\n', [X, BadRow(3, TORN_QUOTE)]),
            id="a quote that nobody closes takes in what follows",
        ),
        pytest.param("b.csv", '"a\n', [BadRow(1, TORN_QUOTE)], id="a header may be torn, too"),
        pytest.param(
            *("b.csv", "a;b\nx;1,5\n", [Record(2, {"a": "x", "b": "1,5"})]),
            id="semicolons, where a comma is for decimals",
        ),
        pytest.param(
            *("b.csv", 'a,b\r\n"x\r\ny",z\r\n', [Record(2, {"a": "x\r\ny", "b": "z"})]),
            id="line ends within a cell stay",
        ),
        pytest.param(
            *("b.csv", '"a";"b"\nx;1,5\n', [Record(2, {"a": "x", "b": "1,5"})]),
            id="semicolons between quoted names",
        ),
        pytest.param(
            *("b.csv", '"a,c,d";b;a\ny;1,5;x\n'),
            [Record(2, {"a,c,d": "y", "b": "1,5", "a": "x"})],
            id="what is quoted separates nothing",
        ),
        pytest.param(
            *("b.jsonl", '{"a": 1}\n[1]\n\n{"a": 2}'),
            [A1, BadRow(2, "not a JSON object"), Record(4, {"a": 2})],
            id="lines of JSON are objects or bad",
        ),
        pytest.param("b.jsonl", '\ufeff{"a": 1}\n', [A1], id="lines may begin with a mark"),
        pytest.param("b.json", '\ufeff[{"a": 1}]', [A1], id="JSON may begin with a mark"),
        pytest.param("b.json", '{"a": 1}', [A1], id="JSON may be one object"),
        pytest.param(
            *("b.json", '[{"a": NaN}, 1]'),
            [Record(1, {"a": None}), BadRow(2, "not a JSON object")],
            id="NaN is no number",
        ),
        pytest.param(
            *("b.jsonl", '{"a": Infinity}', [Record(1, {"a": float("inf")})]),
            id="infinity is one",
        ),
        *(
            pytest.param(
                *("b.jsonl", f"[{before}{'[' * 100_000}"),
                [BadRow(1, "not JSON: nested too deeply")],
                id=f"a line that is nested too deep is bad {before}",
            )
            for before in ("", "NaN, ")
        ),
    ],
)
def test_rows_are_read_as_they_stand(
    tmp_path: Path, name: str, content: str | bytes, rows: list[Record | BadRow]
) -> None:
    """Each with the line where an editor finds it; a bad one hides no other."""
    assert records(tmp_path / name, content) == rows


def test_a_line_that_was_cut_short_hides_no_other(tmp_path: Path) -> None:
    """As a killed program leaves it."""
    good, torn = records(tmp_path / "b.jsonl", '{"a": 1}\n{"a"\n')

    assert good == A1
    assert isinstance(torn, BadRow)
    assert torn.why.startswith("not JSON: ")


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
        (("model", "judge", "games"), "it looks like --layout arena-hard"),
        (("question_id", "model_a", "model_b", "winner", "judge"), ""),
        (
            ("instruction", "generator_1", "generator_2", "preference"),
            "it looks like --layout alpaca-eval",
        ),
        (
            ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"),
            "it looks like --layout mt-bench",
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
    """Who forgot --layout need not look it up."""
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(dict.fromkeys(fields, "x")))

    def read_plain() -> None:
        [*records_of(path, FORMATS["plain"])]

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
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_tell_the_format(
    tmp_path: Path, fields: tuple[str, ...], name: str, suffix: str
) -> None:
    """Nobody need look up what a file of votes is called; what no columns tell is a plain table."""
    path = tmp_path / f"b{suffix}"
    if suffix == ".csv":
        path.write_text(",".join(fields))
    else:
        row = dict.fromkeys(fields, "x")
        path.write_bytes(parquet_content(dict.fromkeys(fields, str), [row]))

    assert format_of(columns_of(path)).name == name


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["b.csv", "b.jsonl", "piped", "b.csv.gz"])
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
        ("b.csv", b"\x7fELF\0\xff,x\n", "it is not a text, and must be a table"),
        ("b.csv.gz", compress(b"", mtime=0), "the file is empty"),
        ("b.json", "\ufeff\n", "the file is empty"),
        ("b.parquet", "", "the file is empty"),
        ("piped", "", "the file is empty"),
        ("b.csv", None, "cannot be read: No such file"),
        ("b.json", '{"a": 1}\n{"a": 2}', "name a file of JSON lines .jsonl"),
        ("b.json", "[" * 100_000, "not JSON: nested too deeply"),
        ("b.parquet", "PAR", "cannot be read as Parquet: "),
        ("b.parquet", None, "cannot be read: No such file"),
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
        found = [[*records_of(pipe, FORMAT, content=copy)] for _ in range(2)]
    writer.join()

    assert [each.fields["a"] for (each,) in found if isinstance(each, Record)] == ["1", "1"]
    assert not copy.exists()
