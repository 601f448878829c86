"""Whose answers a file has, to which prompts of the bank."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.importing.answers import RecordedAnswers, read_answers, unanswered
from commands.settings.sections import RecordedSection
from ledger.events.conversations import transcript
from ledger.events.registration import Prompt
from ledger.identity import PromptId, digest_of

BANK = tuple(
    Prompt(prompt_id=PromptId(name), source="own", subject="general", text=text)
    for name, text in {"p1": "Why?", "p2": "Who?"}.items()
)


def read(
    tmp_path: Path, *rows: Mapping[str, object], bank: Sequence[Prompt] = BANK, **keys: str
) -> RecordedAnswers:
    """Read the answers of a file of these rows."""
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    named = {"id": "mine", "loader": "recorded", "responses": "answers.jsonl", **keys}
    return read_answers(RecordedSection.model_validate(named), tmp_path, bank, None)


def test_a_row_names_its_prompt_by_id_or_text(tmp_path: Path) -> None:
    """What answers other prompts is left out."""
    found = read(
        tmp_path,
        {"prompt_id": "p2", "output": "Me"},
        {"id": 7, "question": "Why?", "answer": "So"},
        {"prompt": "What?", "response": "That"},
    )

    assert {name: row.text for name, row in found.by_prompt.items()} == {"Who?": "Me", "Why?": "So"}


@pytest.mark.parametrize(
    "answer", ['[{"role": "user", "content": "hi"}]', '[{"role": "admin"}, {"role": "assistant"}]']
)
def test_an_answer_that_happens_to_be_json_is_the_text_that_it_is(
    answer: str, tmp_path: Path
) -> None:
    """A list of staff is no agent's run, and was an answer before there were any."""
    found = read(tmp_path, {"prompt_id": "p1", "response": answer})

    assert found.by_prompt["Why?"].text == answer


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
        ([{"prompt": "Why?", "response": [1]}], "1: response is list, but must be a text"),
        (
            [{"prompt": "Why?", "response": ["x", "y"]}],
            "1: 2 answers, but the prompt asks for 1; give each question one",
        ),
        (
            [{"prompt": "Why?", "response": [{"role": "judge", "content": "A"}]}],
            "1: message 1 has the role 'judge'; write one of system, developer, user, assistant",
        ),
        (
            [{"prompt": "Why?", "response": [{"role": "tool", "content": [{"type": "image"}]}]}],
            "1: message 1 has a part of type 'image': judges are shown texts alone",
        ),
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


TALK = (("user", "Why?"), ("user", "Why, really?"))
TALKS = (
    *BANK,
    Prompt(
        prompt_id=PromptId("p3"),
        source="own",
        subject="general",
        text=transcript(TALK),
        messages=TALK,
    ),
)


@pytest.mark.parametrize(
    "row",
    [
        {"prompt_id": "p3", "response": ["So", "Just so"]},
        {"prompt_id": "p3", "response": '["So", "Just so"]'},  # as in a CSV
        {"turns": ["Why?", "Why, really?"], "response": ["So", "Just so"]},
        {  # as `tourney project responses` has it
            "prompt": "p3",
            "entrant": "a",
            "text": transcript((("assistant", "So"), TALK[1], ("assistant", "Just so"))),
            "n_tokens": 2,
        },
        {"messages": [{"role": r, "content": c} for r, c in TALK], "response": ["So", "Just so"]},
        {"prompt": "Why, really?", "response": ["So", "Just so"]},  # no other prompt asks it
        {"prompt": transcript(TALK), "response": ["So", "Just so"]},
    ],
)
def test_a_list_answers_the_questions_of_a_conversation(
    tmp_path: Path, row: dict[str, object]
) -> None:
    """Each in the light of those before; a plain prompt of the same words is another."""
    found = read(tmp_path, row, bank=TALKS)

    first = (("prompt", "p3"), TALK[0])
    asked = (*first, ("assistant", "So"), TALK[1])
    texts = {name: each.text for name, each in found.by_prompt.items()}
    assert texts == {first: "So", asked: "Just so"}
    assert unanswered(found, TALKS) == f"{found.file} has no answer to 2 prompts: p1, p2"


def test_a_conversation_without_an_answer_to_each_question_is_named(tmp_path: Path) -> None:
    """The first answer is one all the same."""
    rows = [{"prompt_id": name, "response": "So"} for name in ("p1", "p2", "p3")]

    found = read(tmp_path, *rows, bank=TALKS)

    assert found.by_prompt[("prompt", "p3"), TALK[0]].text == "So"
    assert unanswered(found, TALKS) == f"{found.file} has no answer to 1 prompt: p3"


def test_plain_prompts_have_the_digest_that_they_had(tmp_path: Path) -> None:
    """A conversation beside them adds to it."""
    rows = [{"prompt_id": name, "response": "So"} for name in ("p1", "p2")]
    plain = read(tmp_path, *rows)
    beside = read(tmp_path, *rows, {"prompt_id": "p3", "response": ["So", "Just so"]}, bank=TALKS)

    assert plain.digest == digest_of([["Who?", "So"], ["Why?", "So"]])
    assert beside.digest != plain.digest == read(tmp_path, *rows, bank=TALKS).digest


def test_the_run_of_an_agent_is_one_text(tmp_path: Path) -> None:
    """Calls and results are told apart from what is said, whoever wrote them."""
    call = {"type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    openai = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "2"},
        {"role": "assistant", "content": "It is 2."},
    ]
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "2"}]}
    anthropic = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 2."}]},
    ]

    texts = [
        read(tmp_path, {"prompt_id": "p1", "response": run}).by_prompt["Why?"].text
        for run in (openai, anthropic, json.dumps(openai))
    ]

    said = (("assistant calls", 'add({"a": 1})'), ("tool", "2"), ("assistant", "It is 2."))
    assert texts == [transcript(said)] * 3


def test_a_run_of_one_message_is_what_it_says(tmp_path: Path) -> None:
    """As servers give an answer."""
    run = [{"role": "assistant", "content": "So"}]

    assert read(tmp_path, {"prompt_id": "p1", "response": run}).by_prompt["Why?"].text == "So"


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A misspelt one, that is; a row that lacks it has no answer."""
    rows = [{"prompt": "Why?", "v1": "x"}, {"prompt": "Who?"}]

    assert [*read(tmp_path, *rows, column="v1").by_prompt] == ["Why?"]
    with pytest.raises(ConfigurationError, match="no column 'v2', which `column` names"):
        read(tmp_path, *rows, column="v2")
