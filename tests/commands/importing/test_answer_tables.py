"""Answers that are a whole tournament: what is kept of their prompts, and what is told."""

import json
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.answer_tables import AnswersTable, read_answers_table


def read(path: Path) -> AnswersTable:
    """Read a table, or a folder of files."""
    return read_answers_table(path)


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
