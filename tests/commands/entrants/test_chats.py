"""A chat has turns; plain text is the same without roles, as is what a ledger keeps."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.entrants.chats import (
    Chat,
    ChatForm,
    Turn,
    after_system,
    messages_of,
    n_shortenable,
    plain_text,
    prompt_messages,
    recorded_text,
    shortened,
    user_turn,
    without_system,
)

SHOTS: Final[Chat] = (
    Turn("system", "Of doses.\n\n"),
    Turn("user", "1 + 1?", "\n"),
    Turn("assistant", "2", "\n\n"),
    Turn("user", "2 + 2?", " "),
)
BEGUN: Final[Chat] = (*SHOTS, Turn("assistant", "It is"))


def test_plain_text_has_what_stands_behind_each_turn() -> None:
    """Byte for byte: a space more is another number."""
    assert plain_text(BEGUN) == "Of doses.\n\n1 + 1?\n2\n\n2 + 2? It is"


@pytest.mark.parametrize(
    ("chat", "form", "expected"),
    [
        (SHOTS, "turns", [(turn.role, turn.content) for turn in SHOTS]),
        (SHOTS, "one-turn", [("system", "Of doses.\n\n"), ("user", "1 + 1?\n2\n\n2 + 2?")]),
        (BEGUN[1:], "one-turn", [("user", "1 + 1?\n2\n\n2 + 2?"), ("assistant", "It is")]),
        (user_turn("?"), "one-turn", [("user", "?")]),
    ],
)
def test_one_turn_holds_all_examples(
    chat: Chat, form: ChatForm, expected: list[tuple[str, str]]
) -> None:
    """But what the system says, and the beginning of the answer, stay turns of their own."""
    assert [*messages_of(chat, form)] == expected


def test_a_ledger_keeps_one_turn_as_its_text_and_several_as_json() -> None:
    """So a question without examples is the same item, whoever is asked in whatever way."""
    assert recorded_text(messages_of(user_turn("ä?"), "turns")) == "ä?"
    assert json.loads(recorded_text(messages_of(SHOTS, "turns")))[1] == {
        "role": "user",
        "content": "1 + 1?",
    }


@pytest.mark.parametrize(
    ("system", "messages", "expected"),
    [
        (None, (("user", "?"),), (("user", "?"),)),
        ("Short.", (("user", "?"),), (("system", "Short."), ("user", "?"))),
        ("Short.", (("system", "Doses"),), (("system", "Short.\n\nDoses"),)),
        ("Short.\n", (("system", "Doses"),), (("system", "Short.\nDoses"),)),
    ],
)
def test_a_system_prompt_stands_before_a_description(
    system: str | None, messages: tuple[tuple[str, str], ...], expected: object
) -> None:
    """As lm-evaluation-harness joins the two."""
    assert after_system(system, messages) == expected


def test_a_task_can_say_what_stands_between_a_system_prompt_and_its_description() -> None:
    """A prompt by itself follows in a turn of its own."""
    assert after_system("Short.", (("system", "Doses"),), " - ") == (("system", "Short. - Doses"),)
    assert prompt_messages("Short.", "?") == (("system", "Short."), ("user", "?"))


def test_without_a_place_for_it_the_user_says_what_the_system_would() -> None:
    """Nothing that is set is left out."""
    assert without_system((("system", "Short."), ("user", "?"))) == (("user", "Short.\n\n?"),)


CONTENTS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=8)), min_size=1, max_size=5
)


@given(CONTENTS, st.integers(0, 50))
def test_a_shorter_chat_lacks_its_beginning_alone(
    said: list[tuple[str, str]], n_characters: int
) -> None:
    """The roles, what the system says and the question at the end stay."""
    messages = (("system", "Short."), *said)

    left = shortened(messages, n_characters)

    assert [role for role, _ in left] == [role for role, _ in messages]
    assert left[0] == messages[0]
    whole = "".join(content for _, content in said)
    assert "".join(content for _, content in left[1:]) == whole[n_characters:]
    assert n_shortenable(left) == max(0, len(whole) - n_characters)
