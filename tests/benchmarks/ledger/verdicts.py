"""Events to append: real verdicts, no two of the same key, padded to a size."""

from hashlib import sha256
from itertools import count, islice
from typing import TypedDict

from ledger.events.judging import Verdict, VerdictReceived
from ledger.events.registry import EVENTS
from ledger.identity import Digest, JudgeId

_PROSE = "Response A names the drug and the dose, while response B leaves the dose open. "


class Fields(TypedDict):
    """What a verdict is made of; rivals make theirs of the same."""

    query_key: Digest
    judge: JudgeId
    verdict: Verdict
    reply: str
    parser: str
    stop_reason: str
    model: str


class Verdicts:
    """An endless supply, in which the stored payload of each has so many bytes."""

    def __init__(self, n_bytes: int, *, first: int = 0) -> None:
        self._numbers = count(first)
        n_bare = len(encoded(_fields(0, "")))
        self._reply = (_PROSE * (n_bytes // len(_PROSE) + 1))[: n_bytes - n_bare]

    def take(self, n: int) -> list[Fields]:
        """Return the next n."""
        return [_fields(number, self._reply) for number in islice(self._numbers, n)]

    def batches(self, n: int, size: int) -> list[list[Fields]]:
        """Return the next n batches of a size."""
        return [self.take(size) for _ in range(n)]


def encoded(fields: Fields) -> bytes:
    """Return the payload that the ledger stores."""
    return EVENTS.encode(VerdictReceived(**fields))


def _fields(number: int, reply: str) -> Fields:
    return Fields(
        query_key=Digest(sha256(b"%d" % number).hexdigest()),
        judge=JudgeId("reference"),
        verdict="A",
        reply=reply,
        parser="last_line.v1",
        stop_reason="end_turn",
        model="claude-sonnet-4-5",
    )
