"""The turns of a conversation, and the one text by which people and judges read them."""

import re
from itertools import pairwise
from typing import Final, TypeAlias

Messages: TypeAlias = tuple[tuple[str, str], ...]
"""The turns of a chat: a role, as system, user or assistant, and what it says."""

_BACKTICKS: Final = re.compile("`+")
_TURN: Final = re.compile(
    r"(?P<role>system|developer|user|assistant|assistant calls|tool|function):\n"
    r"(?P<fence>`{3,})\n(?P<content>.*?)\n(?P=fence)(?:\n\n|\Z)",
    re.DOTALL,
)


def transcript(messages: Messages) -> str:
    """Return turns as one text: each under its role, between fences of its own.

    A fence has more backticks than any run of them in what it holds, so nothing that is said can
    close it and pose as another turn. Different conversations have different transcripts.
    """
    return "\n\n".join(_fenced(role, content) for role, content in messages)


def _fenced(role: str, content: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{role}:\n{fence}\n{content}\n{fence}"


def turns_in(text: str) -> Messages:
    """Return the turns of a transcript; none of any other text."""
    turns = tuple((turn["role"], turn["content"]) for turn in _TURN.finditer(text))
    return turns if transcript(turns) == text else ()


def asked_so_far(messages: Messages, answers: tuple[str, ...]) -> Messages:
    """Return the turns up to the first question that is not answered yet.

    Where a turn of the user follows another, the entrant answers in between.
    """
    asked: list[tuple[str, str]] = []
    left = iter(answers)
    for message, following in zip(messages, (*messages[1:], None), strict=True):
        asked.append(message)
        if following is not None and message[0] == following[0] == "user":
            answer = next(left, None)
            if answer is None:
                break
            asked.append(("assistant", answer))
    return tuple(asked)


def n_answers(messages: Messages) -> int:
    """Count the answers that an entrant gives in a conversation: one, or one to each question."""
    return 1 + sum(one[0] == other[0] == "user" for one, other in pairwise(messages))
