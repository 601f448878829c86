"""Read a prompt that is a conversation: `messages`, or `turns` of which the user says each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from commands.errors import ConfigurationError
from ledger.events.conversations import Messages, transcript

FORMS: Final = ("messages", "turns")
"""The keys of a prompt that say a conversation."""
_ROLES: Final = ("system", "user", "assistant")
_EXAMPLES: Final[Mapping[str, str]] = {
    "messages": '[{"role": "user", "content": "..."}]',
    "turns": '["...", "..."]',
}


def with_turns(record: Mapping[str, object]) -> dict[str, object]:
    """Return a prompt with its conversation, if it has one, as one text and as turns.

    A conversation that is one question is that text.

    Raises:
        ConfigurationError: It is no conversation that an entrant could answer.
    """
    prompt = {name: value for name, value in record.items() if name not in FORMS}
    given = [name for name in ("text", "prompt", *FORMS) if record.get(name) is not None]
    form = next((name for name in given if name in FORMS), None)
    if form is None:
        return prompt
    if len(given) > 1:
        names = " and as ".join(map(repr, given))
        raise ConfigurationError([f"the question stands twice, as {names}; keep one of them"])
    messages = _conversation(record[form], form)
    if len(messages) == 1:
        return {**prompt, "text": messages[0][1]}
    return {**prompt, "text": transcript(messages), "messages": messages}


def _conversation(value: object, form: str) -> Messages:
    """Return the turns of a list.

    Raises:
        ConfigurationError: It is no list of turns, or there is no next one for an entrant to write.
    """
    if not isinstance(value, list) or not value:
        what = "is empty" if value == [] else f"is {value!r:.60}, not a list"
        remedy = f"write {_EXAMPLES[form]}, or one question as 'text'"
        raise ConfigurationError([f"{form!r} {what}; {remedy}"])
    turns = value if form == "messages" else [{"role": "user", "content": each} for each in value]
    faults = [
        f"turn {number} of {form!r} {fault}"
        for number, turn in enumerate(turns, start=1)
        if (fault := _fault(turn))
    ]
    messages = () if faults else tuple((turn["role"], _text(turn["content"])) for turn in turns)
    if faults := faults or [*_disorder(messages)]:
        raise ConfigurationError(faults)
    return messages


def _fault(turn: object) -> str | None:
    """Say why a turn cannot be sent."""
    if not isinstance(turn, dict) or not {"role", "content"} <= turn.keys():
        return f"is no turn, which has a role and its content, as in {_EXAMPLES['messages']}"
    if turn["role"] not in _ROLES:
        return f"has the role {turn['role']!r}; write one of {', '.join(_ROLES)}"
    if further := [name for name in turn if name not in {"role", "content"}]:
        return f"has {further[0]!r}, which entrants are not sent; remove it"
    content = turn["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else part
        if kind != "text":
            why = "entrants and judges are shown texts alone"
            return f"has a part of type {kind!r}: {why}; say in words what it shows, or remove it"
        if not isinstance(part.get("text"), str):
            return f"says {part.get('text')!r:.60}, which is no text; write one as its content"
    return None if _text(content).strip() else "says nothing; write a text as its content"


def _text(content: str | Sequence[Mapping[str, str]]) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def _disorder(messages: Messages) -> Iterator[str]:
    """Yield which turns stand where no entrant could be sent them."""
    before = ""
    for number, (role, _) in enumerate(messages, start=1):
        turn = f"turn {number} of 'messages' is the {role}'s"
        if role == "system" and before:
            yield f"{turn}; a system prompt is the first turn"
        if role == "assistant" and before != "user":
            yield f"{turn}; put a turn of the user's before it"
        before = role
    if before != "user":
        remedy = "the entrant answers a user, so end with the user's turn"
        yield f"the last turn of 'messages' is the {before}'s; {remedy}"
