"""Whose answers a file has, to which prompts of the bank."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.answers import RecordedAnswers, read_answers
from commands.settings.sections import RecordedSection
from ledger.events.registration import Prompt
from ledger.identity import PromptId

BANK = tuple(
    Prompt(prompt_id=PromptId(name), source="own", subject="general", text=text)
    for name, text in {"p1": "Why?", "p2": "Who?"}.items()
)


def read(tmp_path: Path, *rows: Mapping[str, object], **keys: str) -> RecordedAnswers:
    """Read the answers of a file of these rows."""
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    named = {"id": "mine", "loader": "recorded", "responses": "answers.jsonl", **keys}
    return read_answers(RecordedSection.model_validate(named), tmp_path, BANK, None)


def test_a_row_names_its_prompt_by_id_or_text(tmp_path: Path) -> None:
    """What answers other prompts is left out."""
    found = read(
        tmp_path,
        {"prompt_id": "p2", "output": "Me"},
        {"id": 7, "question": "Why?", "answer": "So"},
        {"prompt": "What?", "response": "That"},
    )

    assert {name: row.text for name, row in found.by_prompt.items()} == {"Who?": "Me", "Why?": "So"}


def test_identity_is_what_was_answered(tmp_path: Path) -> None:
    """Neither the order of the rows, nor other columns, nor how the file names its prompts."""
    one, two = {"prompt_id": "p1", "response": "So"}, {"prompt_id": "p2", "response": "Me"}
    first = read(tmp_path, one, two)
    same = read(tmp_path, two, {"prompt": "Why?", "completion": "So", "seconds": 2})
    other = read(tmp_path, one, {**two, "response": "You"})

    assert first.digest == same.digest != other.digest
    assert first.file_digest != same.file_digest


def test_one_model_of_several_is_chosen(tmp_path: Path) -> None:
    """Unless it is said which, their answers are not mixed."""
    rows = [{"prompt": "Why?", "response": name, "model": name} for name in ("a", "b")]

    assert read(tmp_path, *rows, model="b").by_prompt["Why?"].text == "b"
    with pytest.raises(
        ConfigurationError, match="answers of 'a', 'b'; name one of them by `model`"
    ):
        read(tmp_path, *rows)
    with pytest.raises(ConfigurationError, match=r"no row has model 'c' \(there: 'a', 'b'\)"):
        read(tmp_path, *rows, model="c")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([{"prompt": "What?", "response": "x"}], "none of its 1 row answers a prompt of the bank"),
        ([{"prompt": "Why?"}], "1: no column holds the answer; name it 'response'"),
        ([{"prompt": "Why?", "response": ["x"]}], "1: response is list, but must be a text"),
        (
            [{"prompt": "Why?", "response": each} for each in "xy"],
            "2: another answer to the prompt of row 1; keep one of them",
        ),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, rows: list[dict[str, object]], fault: str
) -> None:
    """With the row, and what to do."""
    with pytest.raises(ConfigurationError, match=fault):
        read(tmp_path, *rows)


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A misspelt one, that is; a row that lacks it has no answer."""
    rows = [{"prompt": "Why?", "v1": "x"}, {"prompt": "Who?"}]

    assert [*read(tmp_path, *rows, column="v1").by_prompt] == ["Why?"]
    with pytest.raises(ConfigurationError, match="no column 'v2', which `column` names"):
        read(tmp_path, *rows, column="v2")
