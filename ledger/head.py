"""The head of a ledger: a position and the chain's value there, which name a whole history."""

import re
from typing import Final, NamedTuple, Self

from ledger.errors import NotAHead
from ledger.identity import Digest

_SPELLING: Final = re.compile(r"\b([0-9a-f]{64})@([0-9]{1,18})\b")


def heads_in(text: str) -> tuple["Head", ...]:
    """Return the heads that stand in a text, each once."""
    found = dict.fromkeys(each[0] for each in _SPELLING.finditer(text))
    return tuple(map(Head.parse, found))


class Head(NamedTuple):
    """The last event's place, and the chain's value there; spelt `DIGEST@POSITION`."""

    position: int
    chain: Digest

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a head as it is printed.

        Raises:
            NotAHead: It is spelt otherwise.
        """
        found = _SPELLING.fullmatch(text.strip())
        if found is None:
            raise NotAHead(text)
        return cls(int(found[2]), Digest(found[1]))

    def __str__(self) -> str:
        """Return the printed form."""
        return f"{self.chain}@{self.position}"
