"""Answers that are a whole tournament: what is kept of their prompts, and what is told."""

import json
import os
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.answer_tables import AnswersTable, PromptTable, read_table


def read(path: Path) -> AnswersTable:
    """Read a table, or a folder of files."""
    found = read_table(path, n_named=0)
    assert isinstance(found, AnswersTable)
    return found


@pytest.mark.parametrize(
    ("text", "n_named", "unused"),
    [
        ("prompt,gold\nWhy?,So.\n", 0, ()),
        ("prompt,votes\nWhy?,3\n", 0, ("votes",)),
        ("prompt,id,tags,_note,votes\nWhy?,1,a,b,3\n", 0, ("tags", "_note", "votes")),
        ("prompt,old,new\nWhy?,So.,No.\n", 2, ("old", "new")),
        ("prompt,,note,,note\nWhy?,,1,,2\n", 2, ("note",)),  # as spreadsheets leave them behind
    ],
)
def test_a_table_without_answers_of_two_systems_is_of_prompts(
    tmp_path: Path, text: str, n_named: int, unused: tuple[str, ...]
) -> None:
    """Or with columns that may be anything, where two models are named that answer."""
    (tmp_path / "t.csv").write_text(text)

    found = read_table(tmp_path / "t.csv", n_named)

    assert isinstance(found, PromptTable)
    assert (found.prompts[0]["text"], found.unused) == ("Why?", unused)


@pytest.mark.parametrize("n_named", [0, 1])
def test_one_model_may_be_compared_with_answers(tmp_path: Path, n_named: int) -> None:
    """It alone is no tournament, so the columns are meant."""
    (tmp_path / "t.csv").write_text("prompt,old,new\nWhy?,So.,No.\n")

    found = read_table(tmp_path / "t.csv", n_named)

    assert isinstance(found, AnswersTable)
    assert [*found.entrants] == ["old", "new"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,b\n1,2\n", "it holds neither prompts nor answers: no column is one of prompt, text"),
        ("prompt,old,new\nWhy?,café,1\n", "t.csv:2: old is .*not UTF-8; save the file as UTF-8"),
        ("prompt,old,new,new\nWhy?,1,2,3\n", "there are 2 columns 'new'; rename all but the one"),
        (
            "prompt,model,response\nWhy?,a,So.\n",
            "it has answers of a only; name a folder .*; for the prompts alone, remove the answers",
        ),
    ],
)
def test_what_is_neither_says_what_was_looked_for(tmp_path: Path, text: str, why: str) -> None:
    """Nobody can tell which of them was meant."""
    (tmp_path / "t.csv").write_text(text, encoding="latin-1")

    with pytest.raises(ConfigurationError, match=why):
        read_table(tmp_path / "t.csv", n_named=0)


def test_a_file_of_a_tool_is_read_as_one(tmp_path: Path) -> None:
    """It has no column of prompts, and its advice is another than a table's."""
    turns = {"question_id": 81, "model_id": "m", "choices": [{"turns": ["Hi"]}]}
    (tmp_path / "m.jsonl").write_text(json.dumps(turns))

    with pytest.raises(ConfigurationError, match="its rows name prompts by id only; name the fol"):
        read_table(tmp_path / "m.jsonl", n_named=0)


def test_a_folder_has_each_system_once_and_references_do_not_compete(tmp_path: Path) -> None:
    """Of two files with one system's answers, nobody can tell which were meant."""

    def write(file: str, model: str) -> None:
        row = {"instruction": "Why?", "output": "So.", "generator": model}
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps([row]))

    for file, model in (("a.json", "a"), ("b.json", "b"), ("reference_answer/gpt.json", "gpt")):
        write(file, model)

    assert [*read(tmp_path).entrants] == ["a", "b"]
    write("later.json", "a")
    with pytest.raises(ConfigurationError, match=r"both have answers of 'a'; keep one of them"):
        read(tmp_path)


def from_pipe(text: str) -> AnswersTable | PromptTable:
    """Read a table that another process wrote."""
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    try:
        return read_table(Path(f"/dev/fd/{reader}"), n_named=0)
    finally:
        os.close(reader)


def test_answers_of_a_pipe_are_refused() -> None:
    """They are read again by each command; prompts are written to a bank."""
    assert isinstance(from_pipe("prompt\nWhy?\n"), PromptTable)

    with pytest.raises(ConfigurationError, match="answers are read again by each command; save"):
        from_pipe("prompt,old,new\nWhy?,So.,No.\n")


def test_questions_keep_their_category_and_their_references(tmp_path: Path) -> None:
    """MT-bench has a reference for each turn; a judge is shown one gold answer."""
    question = {"question_id": 81, "category": "math", "turns": ["1 + 1?", "And 1?"]}
    (tmp_path / "question.jsonl").write_text(json.dumps({**question, "reference": ["2", "3"]}))
    for model in ("a", "b"):
        row = {"question_id": 81, "model_id": model, "choices": [{"turns": ["2", "3"]}]}
        (tmp_path / f"{model}.jsonl").write_text(json.dumps(row))

    (prompt,) = read(tmp_path).prompts

    assert (prompt["category"], prompt["gold_answer"]) == ("math", "2\n\n3")
    assert prompt["turns"] == ["1 + 1?", "And 1?"]


def test_a_header_alone_holds_no_prompts(tmp_path: Path) -> None:
    """Its columns are not what is wrong."""
    (tmp_path / "t.csv").write_text("prompt,old,new\n")

    with pytest.raises(ConfigurationError, match="it holds no prompts below its header"):
        read(tmp_path / "t.csv")


def test_empty_cells_of_systems_are_counted(tmp_path: Path) -> None:
    """Each is an answer, which somebody may not have meant; a gold answer is none."""
    (tmp_path / "t.csv").write_text("prompt,gold_answer,old,new\nWhy?,,So.,\nWho?,Me.,,\n")

    assert read(tmp_path / "t.csv").n_empty == 3


def test_columns_that_usually_hold_no_answers_are_no_systems(tmp_path: Path) -> None:
    """A retrieved context is judged by nobody; its name is told, so that it can be another."""
    (tmp_path / "t.csv").write_text("prompt,Context,latency,old,new\nWhy?,Because.,3,So.,No.\n")

    table = read(tmp_path / "t.csv")

    assert [*table.entrants] == ["old", "new"]
    assert [told.split(",")[0] for told in table.unread] == ["column 'Context'", "column 'latency'"]


OF_LM_EVAL = {
    f"{model}/samples_sums_{model}.jsonl": {
        "doc": {},
        "arguments": [["1 + 1 ="]],
        "resps": [[model]],
    }
    for model in ("big", "small")
}
OF_PROMPTFOO = [
    {"provider": {"id": name}, "prompt": {"raw": "Why?"}, "vars": {}, "response": {"output": name}}
    for name in ("openai:a", "openai:b")
]
OF_ARENA_HARD = {
    f"{model}.jsonl": {
        "uid": "u1",
        "model": model,
        "messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}],
    }
    for model in ("a", "b")
}


@pytest.mark.parametrize(
    ("files", "systems"),
    [
        (
            {**OF_LM_EVAL, "own.json": {"prompt": "1 + 1 =", "response": "2"}},
            ["big", "own", "small"],
        ),
        (
            {"out.json": {"config": {}, "results": {"results": OF_PROMPTFOO}}},
            ["openai:a", "openai:b"],
        ),
        (OF_ARENA_HARD, ["a", "b"]),
    ],
    ids=["lm-eval", "promptfoo", "arena-hard"],
)
def test_each_system_of_a_tools_files_is_an_entrant(
    tmp_path: Path, files: dict[str, object], systems: list[str]
) -> None:
    """By the model that it names, else its folder or file; a file without answers is told."""
    for name, row in {**files, "cache.json": []}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(row))

    table = read(tmp_path)

    assert sorted(table.entrants) == systems
    assert table.unread == (f"{tmp_path / 'cache.json'}: it holds no answers",)
