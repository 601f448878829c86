"""Whose answers a file has, to which prompts of the bank."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

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
SO, ME = ({"prompt_id": name, "response": text} for name, text in (("p1", "So"), ("p2", "Me")))


def read(
    tmp_path: Path, *rows: Mapping[str, object], bank: Sequence[Prompt] = BANK, **keys: str
) -> RecordedAnswers:
    """Read the answers of a file of these rows."""
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    named = {"id": "mine", "loader": "recorded", "responses": "answers.jsonl", **keys}
    return read_answers(RecordedSection.model_validate(named), tmp_path, bank)


def texts(tmp_path: Path, *rows: Mapping[str, object], bank: Sequence[Prompt] = BANK) -> object:
    """Return the answers of a file by what is asked."""
    found = read(tmp_path, *rows, bank=bank).by_prompt
    return {asked: row.text for asked, row in found.items()}


def test_a_row_names_its_prompt_by_id_or_text(tmp_path: Path) -> None:
    """What answers other prompts is left out."""
    rows = (
        {"prompt_id": "p2", "output": "Me"},
        {"id": 7, "question": "Why?", "answer": "So"},
        {"prompt": "What?", "response": "That"},
    )

    assert texts(tmp_path, *rows) == {"Who?": "Me", "Why?": "So"}


def test_identity_is_what_was_answered(tmp_path: Path) -> None:
    """Neither the order of rows, nor other columns, nor names, nor a conversation beside them."""
    first = read(tmp_path, SO, ME)
    same = read(tmp_path, ME, {"prompt": "Why?", "completion": "So", "seconds": 2}, bank=TALKS)
    other = read(tmp_path, SO, {**ME, "response": "You"})
    talk = read(tmp_path, SO, ME, {"prompt_id": "p3", "response": ["So", "Just so"]}, bank=TALKS)

    assert first.digest == same.digest == digest_of([["Who?", "Me"], ["Why?", "So"]])
    assert len({first.digest, other.digest, talk.digest}) == 3
    assert first.file_digest != same.file_digest


def test_an_answer_may_say_what_it_took(tmp_path: Path) -> None:
    """In a table with a column for each entrant, each has figures of its own."""
    plain = {**SO, "prompt_tokens": 9, "completion_tokens": 3, "seconds": 1.5, "dollars": "0.02"}
    wide = {"prompt": "Why?", "v1": "So", "v2": "Thus", "v2_dollars": 0.5, "v2_seconds": 2}

    row = read(tmp_path, plain).by_prompt["Why?"]
    one, two = (read(tmp_path, wide, column=name).by_prompt["Why?"] for name in ("v1", "v2"))

    assert (row.n_prompt_tokens, row.n_generated_tokens) == (9, 3)
    assert (row.elapsed_s, row.usd) == (1.5, 0.02)
    assert (one.usd, one.elapsed_s, two.usd, two.elapsed_s) == (None, None, 0.5, 2.0)
    with pytest.raises(ConfigurationError, match="1: dollars is -1, but must be 0 or more"):
        read(tmp_path, {**SO, "dollars": -1})


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


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A misspelt one, that is; a row that lacks it has no answer."""
    rows = [{"prompt": "Why?", "v1": "x"}, {"prompt": "Who?"}]

    assert [*read(tmp_path, *rows, column="v1").by_prompt] == ["Why?"]
    with pytest.raises(
        ConfigurationError, match=r"'v2', which `column` names; did you mean 'v1'\?"
    ):
        read(tmp_path, *rows, column="v2")


ONE_TOO_MANY = "1: 3 answers, but the prompt asks for 2; give each question one"


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([{"prompt": "What?", "response": "x"}], "none of its 1 row answers a prompt of the bank"),
        (
            [{"prompt": "Why?"}],
            r"1: no column holds the answer; name it 'response', .* \(there: 'prompt'\)",
        ),
        ([{"prompt": "Why?", "response": [1]}], "1: response is list, but must be a text"),
        ([{"prompt": "Why?", "response": ["x", "y"]}], "1: 2 answers, but the prompt asks for 1"),
        ([{"prompt_id": "p3", "response": ["x", "y", "z"]}], ONE_TOO_MANY),
        ([{"prompt_id": "p3", "response": '["x", "y", "z"]'}], ONE_TOO_MANY),
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
        read(tmp_path, *rows, bank=TALKS)


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
    first = (("prompt", "p3"), TALK[0])
    asked = (*first, ("assistant", "So"), TALK[1])

    assert texts(tmp_path, row, bank=TALKS) == {first: "So", asked: "Just so"}


@pytest.mark.parametrize("named", [{"prompt_id": "p3"}, {"prompt": "Why, really?"}])
def test_an_answer_meets_each_sample_of_a_conversation(
    tmp_path: Path, named: Mapping[str, str]
) -> None:
    """Each sample is a prompt of its own, whose questions are the same."""
    further = [replace(each, prompt_id=PromptId(f"{each.prompt_id}#2")) for each in TALKS]
    bank = (*TALKS, *further)

    answers = read(tmp_path, SO, ME, {**named, "response": ["So", "Just so"]}, bank=bank)

    assert unanswered(answers, bank) is None


def test_prompts_without_an_answer_to_each_question_are_named(tmp_path: Path) -> None:
    """The first answer is one all the same."""
    found = read(tmp_path, SO, {**SO, "prompt_id": "p3"}, bank=TALKS)

    assert found.by_prompt[("prompt", "p3"), TALK[0]].text == "So"
    assert unanswered(found, TALKS) == f"{found.file} has no answer to 2 prompts: p2, p3"


def says(role: str, content: object) -> dict[str, object]:
    """Return a message."""
    return {"role": role, "content": content}


CALL = {"type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
TOOL = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "2"},
]
OF_ANTHROPIC = [
    says("assistant", [{"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}]),
    says("user", [{"type": "tool_result", "content": [{"type": "text", "text": "2"}]}]),
    says("assistant", [{"type": "text", "text": "So"}]),
]
RUN = transcript((("assistant calls", 'add({"a": 1})'), ("tool", "2"), ("assistant", "So")))
END = [says("user", "Why, really?"), says("assistant", "Just so")]


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ([*TOOL, says("assistant", "So")], RUN),
        (json.dumps([*TOOL, says("assistant", "So")]), RUN),
        (OF_ANTHROPIC, RUN),
        ([says("assistant", "So")], "So"),
        ('[{"role": "user", "content": "hi"}]', '[{"role": "user", "content": "hi"}]'),
        (
            '[{"role": "admin"}, {"role": "assistant"}]',
            '[{"role": "admin"}, {"role": "assistant"}]',
        ),
    ],
    ids=["OpenAI's", "in a CSV", "Anthropic's", "one message", "no agent", "a list of staff"],
)
def test_the_run_of_an_agent_is_one_text(tmp_path: Path, run: object, text: str) -> None:
    """Calls and results are told apart from what is said; an answer that is JSON stays as it is."""
    assert texts(tmp_path, {"prompt_id": "p1", "response": run}) == {"Why?": text}


@pytest.mark.parametrize(
    ("run", "answers"),
    [
        ([*TOOL, says("assistant", "So"), *END], [RUN, "Just so"]),
        ([*OF_ANTHROPIC, *END], [RUN, "Just so"]),
        ([says("user", "Why?"), says("assistant", "So"), *END], ["So", "Just so"]),
        ([says("assistant", "So"), END[1]], ["So", "Just so"]),
        ([*TOOL, says("assistant", "So")], [RUN]),
    ],
    ids=["OpenAI's", "Anthropic's", "with its first question", "answers alone", "the first alone"],
)
def test_an_agents_answers_lie_between_the_users_turns(
    tmp_path: Path, run: list[object], answers: list[str]
) -> None:
    """Each with all that led to it: the calls, their results, and what was said on the way."""
    row = {"prompt_id": "p3", "response": run}

    found = read(tmp_path, row, bank=TALKS).by_prompt

    assert [each.text for each in found.values()] == answers
