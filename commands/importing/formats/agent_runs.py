"""A response that is a list of messages: what an agent said, which tools it called, what came."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from commands.importing.formats.rows import Fields, InvalidFields, shorten
from ledger.events.conversations import Messages, transcript

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_CALLS: Final = "assistant calls"


def is_run(value: object) -> bool:
    """Say whether a value is a list of messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and "role" in each for each in value)
    )


def run_text(messages: list[Fields]) -> str:
    """Return the messages of an agent's run as one text, each between fences of its own.

    Raises:
        InvalidFields: A message has an unknown role, or says what no judge can be shown.
    """
    return text_of(
        tuple(pair for number, each in enumerate(messages, 1) for pair in _said(number, each))
    )


def text_of(said: Messages) -> str:
    """Return what was said as one text; one message of the assistant as it is."""
    return said[0][1] if [role for role, _ in said] == ["assistant"] else transcript(said)


def _said(number: int, message: Fields) -> Iterator[tuple[str, str]]:
    """Yield what a message says and which tools it calls, in the shapes of OpenAI and Anthropic."""
    role, content = message["role"], message.get("content")
    if role not in _ROLES:
        known = ", ".join(_ROLES)
        raise InvalidFields(f"message {number} has the role {shorten(role)}; write one of {known}")
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        match part:
            case {"type": "text", "text": str(text)}:
                if text:
                    yield str(role), text
            case {"type": "text", "text": None}:
                pass
            case {"type": "tool_use", "name": name, "input": given}:
                yield _CALLS, f"{name}({_json(given)})"
            case {"type": "tool_result", "content": result}:
                yield "tool", _result(result)
            case _:
                kind = part.get("type") if isinstance(part, Mapping) else part
                why = "judges are shown texts alone; say in words what it shows, or remove it"
                raise InvalidFields(f"message {number} has a part of type {shorten(kind)}: {why}")
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        called = call.get("function", call) if isinstance(call, dict) else call
        named = called if isinstance(called, dict) else {"name": called}
        yield _CALLS, f"{named.get('name')}({_json(named.get('arguments', ''))})"


def _result(value: object) -> str:
    texts = value if isinstance(value, list) else [value]
    return "\n".join(
        str(each["text"]) if isinstance(each, dict) and "text" in each else _json(each)
        for each in texts
    )


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
