"""The head of a ledger: a position and the chain's value there, which name a whole history."""

import re
from typing import NamedTuple, Self

from ledger.errors import NotAHead
from ledger.identity import Digest


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
        found = re.fullmatch(r"([0-9a-f]{64})@([0-9]{1,18})", text.strip())
        if found is None:
            raise NotAHead(text)
        return cls(int(found[2]), Digest(found[1]))

    def __str__(self) -> str:
        """Return the printed form."""
        return f"{self.chain}@{self.position}"
