"""Prompts that are conversations, as a bank has them, and what none of them can be."""

import json
from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.settings.inputs import read_bank
from ledger.events.registration import Prompt

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Why?"}
ASSISTANT = {"role": "assistant", "content": "Because."}


def part(text: str) -> dict[str, str]:
    """Return a part of a message, as an API's logs have it."""
    return {"type": "text", "text": text}


def bank(folder: Path, **fields: object) -> Prompt:
    """Return the one prompt of a bank that has these fields."""
    path = folder / "bank.jsonl"
    path.write_text(f"{json.dumps(fields)}\n", encoding="utf-8")
    (prompt,) = read_bank(path)
    return prompt


def test_messages_are_kept_and_read_as_one_text(tmp_path: Path) -> None:
    """The text is what people and judges see; the turns are what entrants are sent."""
    prompt = bank(tmp_path, messages=[SYSTEM, USER, ASSISTANT, USER])

    assert prompt.turns == (
        ("system", "Be brief."),
        ("user", "Why?"),
        ("assistant", "Because."),
        ("user", "Why?"),
    )
    assert prompt.text.startswith("system:\n```\nBe brief.\n```\n\nuser:")


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        (
            {"turns": ["Why?", "And then?"]},
            {"messages": [USER, {"role": "user", "content": "And then?"}]},
        ),
        ({"messages": [USER]}, {"text": "Why?"}),
        ({"turns": ["Why?"]}, {"text": "Why?"}),
        (
            {"messages": [{"role": "user", "content": [part("Why?"), part("Say it.")]}]},
            {"text": "Why?\nSay it."},
        ),
    ],
)
def test_a_prompt_may_be_written_in_several_ways(
    tmp_path: Path, said: dict[str, object], plain: dict[str, object]
) -> None:
    """However it is written, its digest is that of the text: its answers are reused."""
    assert bank(tmp_path, **said) == bank(tmp_path, **plain)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"messages": []}, "'messages' is empty; write [{"),
        ({"messages": "Why?"}, "'messages' is 'Why?', not a list; write [{"),
        ({"turns": []}, "'turns' is empty; write [\"...\", \"...\"], or one question as 'text'"),
        ({"turns": ["Why?", ""]}, "turn 2 of 'turns' says nothing; write a text as its content"),
        ({"turns": ["Why?", 3]}, "turn 2 of 'turns' says 3, which is no text; write one"),
        ({"messages": ["Why?"]}, "turn 1 of 'messages' is no turn, which has a role and its"),
        (
            {"messages": [{"role": "tool", "content": "42"}, USER]},
            "turn 1 of 'messages' has the role 'tool'; write one of system, user, assistant",
        ),
        (
            {"messages": [{**USER, "name": "Bo"}]},
            "turn 1 of 'messages' has 'name', which entrants are not sent; remove it",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
            "turn 1 of 'messages' has a part of type 'image_url': entrants and judges are shown",
        ),
        (
            {"messages": [USER, ASSISTANT]},
            "the last turn of 'messages' is the assistant's; the entrant answers a user, so end",
        ),
        ({"messages": [SYSTEM]}, "the last turn of 'messages' is the system's; the entrant"),
        (
            {"messages": [USER, SYSTEM, USER]},
            "turn 2 of 'messages' is the system's; a system prompt is the first turn",
        ),
        (
            {"messages": [ASSISTANT, USER]},
            "turn 1 of 'messages' is the assistant's; put a turn of the user's before it",
        ),
        (
            {"text": "Why?", "messages": [USER]},
            "the question stands twice, as 'text' and as 'messages'; keep one of them",
        ),
        (
            {"messages": [USER], "turns": ["Why?"]},
            "the question stands twice, as 'messages' and as 'turns'; keep one of them",
        ),
        ({"message": [USER]}, "unknown field 'message'; did you mean 'messages'?"),
        ({"messages": None}, "'text' is missing"),
    ],
)
def test_what_no_entrant_could_answer_is_refused(
    tmp_path: Path, said: dict[str, object], fault: str
) -> None:
    """In one sentence, with the line and what to do."""
    with pytest.raises(ConfigurationError) as refused:
        bank(tmp_path, **said)

    (told,) = refused.value.faults
    assert told.removeprefix(f"{tmp_path}/").startswith(f"bank.jsonl:1: {fault}")
