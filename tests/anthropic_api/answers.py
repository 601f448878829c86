"""What the models reply: by default a judge whose verdict follows from the question's digest."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from tests.anthropic_api.prompt import Json
from tests.anthropic_api.schema import value_of

_VERDICTS: Final = ("A", "B", "TIE")


@dataclass(frozen=True)
class Asked:
    """A question to a model."""

    model: str
    system: str
    user: str
    schema: Json | None = None


class Reply(NamedTuple):
    """A model's reply; `refusal` and `max_tokens` are stop reasons, too."""

    text: str
    stop_reason: str = "end_turn"


Answering = Callable[[Asked], Reply]


def judge(asked: Asked) -> Reply:
    """Give some reasoning, and a verdict that the same question always gets."""
    said = f"{asked.model}\0{asked.system}\0{asked.user}".encode()
    number = int.from_bytes(hashlib.sha256(said).digest()[:4], "big")
    verdict = _VERDICTS[number % len(_VERDICTS)]
    reasoning = f"Both were read against the rubric ({number:08x}), point by point."
    if asked.schema is None:
        return Reply(f"{reasoning}\n\nVERDICT: {verdict}")
    value = value_of(asked.schema, text=reasoning, choice=verdict, number=number)
    return Reply(msgspec.json.encode(value).decode())
