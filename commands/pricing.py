"""What a judge costs: the door between asking and the price table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ledger.events.values import Price, Usage
from projections.verdicts.queries import JudgeQuery


class Pricing(Protocol):
    """Prices of one judge, asked in one way."""

    def price_of(self, usage: Usage) -> Price | None:
        """Return the price that holds for a reply; None: not known, or nothing is paid."""
        ...

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return what queries are likely to cost; None: the price is not known."""
        ...

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return what queries cannot cost more than; None: the price is not known."""
        ...

    def caches(self, query: JudgeQuery) -> bool:
        """Say whether the provider keeps a query's system text for the next one."""
        ...


@dataclass(frozen=True)
class FreeOfCharge:
    """A judge on this machine: nothing is paid."""

    def price_of(self, usage: Usage) -> Price | None:  # noqa: ARG002  # a port's signature
        """Return no price."""
        return None

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float:  # noqa: ARG002  # likewise
        """Return nothing."""
        return 0.0

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float:  # noqa: ARG002  # likewise
        """Return nothing."""
        return 0.0

    def caches(self, query: JudgeQuery) -> bool:  # noqa: ARG002  # likewise
        """Keep nothing."""
        return False


FREE_OF_CHARGE: Final = FreeOfCharge()
