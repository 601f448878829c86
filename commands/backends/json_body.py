"""Read JSON that a provider sends, checked: their clients hand on whatever comes."""

import json
from typing import Final, TypeVar

import msgspec

_SHOWN: Final = 30  # bytes of what is no JSON, enough to know a web page by
_Value = TypeVar("_Value")


def decoded(body: bytes, kind: type[_Value]) -> _Value:
    """Return the value of a type that a body holds.

    Raises:
        msgspec.ValidationError: It is another value.
        msgspec.DecodeError: It is no JSON.
    """
    try:
        value = json.loads(body)
    except ValueError as error:
        raise msgspec.DecodeError(f"no JSON, but {body[:_SHOWN]!r}") from error
    return msgspec.json.decode(whole(json.dumps(value, ensure_ascii=False)), type=kind)


def whole(text: str) -> str:
    """Return a text that can be written: half a character, which JSON may hold, becomes "?"."""
    return text.encode(errors="replace").decode()
