"""Chats as turns, and the same content as plain text.

A chat of examples and a question is made of turns as lm-evaluation-harness 0.4.13 makes them
(lm_eval/api/utils.py); what follows a turn in plain text is no part of a chat.
"""

import json
from typing import Final, Literal, NamedTuple, TypeAlias

from ledger.events.conversations import Messages
from ledger.events.registration import EntrantOptions

ChatForm = Literal["turns", "one-turn", "none"]
"""Examples as turns of their own, all in one turn of the user, or plain text."""


class Turn(NamedTuple):
    """What one side says."""

    role: Literal["system", "user", "assistant"]
    content: str
    behind: str = ""  # what follows in plain text


Chat: TypeAlias = tuple[Turn, ...]
BETWEEN: Final = "\n\n"
"""Stands between a system prompt and what follows it in the same turn, if nothing else is said."""


def user_turn(text: str) -> Chat:
    """Return a chat in which the user says one thing."""
    return (Turn("user", text),)


def plain_text(chat: Chat) -> str:
    """Return a chat as plain text, without roles."""
    return "".join(f"{turn.content}{turn.behind}" for turn in chat)


def messages_of(chat: Chat, form: ChatForm) -> Messages:
    """Return the turns that a template is to show."""
    shown = _in_one_turn(chat) if form == "one-turn" else chat
    return tuple((turn.role, turn.content) for turn in shown)


def _in_one_turn(chat: Chat) -> Chat:
    """Put all but the system's turn, and the beginning of an answer, into one turn of the user."""
    before = chat[:1] if chat[0].role == "system" else ()
    after = chat[-1:] if chat[-1].role == "assistant" else ()
    said = chat[len(before) : len(chat) - len(after)]
    user = f"{plain_text(said[:-1])}{said[-1].content}"
    return (*before, Turn("user", user), *after)


def recorded_text(messages: Messages) -> str:
    """Return messages as a ledger has them: the text of a single turn, several as JSON."""
    if len(messages) == 1:
        return messages[0][1]
    return json.dumps(as_json(messages), ensure_ascii=False)


def as_json(messages: Messages) -> list[dict[str, str]]:
    """Return messages as templates and servers take them."""
    return [{"role": role, "content": content} for role, content in messages]


def after_system(system: str | None, messages: Messages, between: str = BETWEEN) -> Messages:
    """Put a system prompt before messages; what the system says already follows behind `between`.

    No space is added to one that is there.
    """
    if not system:
        return messages
    if messages[0][0] != "system":
        return (("system", system), *messages)
    there = messages[0][1]
    touches = system[-1:].isspace() or there[:1].isspace()
    return (("system", f"{system}{'' if touches else between}{there}"), *messages[1:])


def prompt_messages(system: str | None, prompt_text: str) -> Messages:
    """Return the chat of a prompt, behind a system prompt."""
    return after_system(system, (("user", prompt_text),))


def conversation_messages(options: EntrantOptions, asked: Messages) -> Messages:
    """Return a conversation as an entrant is sent it, behind its system prompt.

    The text around a prompt stands around what the user says last.
    """
    *before, (role, last) = asked
    return after_system(options.system, (*before, (role, options.around(last))))


def without_system(messages: Messages) -> Messages:
    """Put the system's text before the user's, for templates without a place for it."""
    (_, system), (_, user), *others = messages
    return (("user", f"{system}{BETWEEN}{user}"), *others)


def shortened(messages: Messages, n_characters: int) -> Messages:
    """Leave out so many characters at the beginning of what is said after the system's turn."""
    kept = []
    for role, content in messages:
        n_cut = 0 if role == "system" else min(n_characters, len(content))
        n_characters -= n_cut
        kept.append((role, content[n_cut:]))
    return tuple(kept)


def n_shortenable(messages: Messages) -> int:
    """Count the characters that `shortened` can leave out."""
    return sum(len(content) for role, content in messages if role != "system")
