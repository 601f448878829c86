"""The cap on spending: hard, and counted in what a query can cost at most."""

from collections.abc import Sequence
from dataclasses import dataclass

from commands.consent import dollars
from commands.errors import Refused
from commands.pricing import Pricing
from projections.tournament.progress import OpenQuery


class BudgetReached(Refused):
    """What comes next might cost more than is left."""

    def __init__(self, cap_usd: float, bound_usd: float, next_usd: float) -> None:
        super().__init__(
            f"${bound_usd:.4f} are spent, in flight or perhaps billed of at most"
            f" {dollars(cap_usd)}, and the next query may cost ${next_usd:.4f}; raise --max-usd"
            " or [judge] max_usd to go on"
        )
        self.cap_usd, self.bound_usd = cap_usd, bound_usd


class PriceUnknown(Refused):
    """A cap cannot be kept on a judge that has no price."""

    def __init__(self) -> None:
        super().__init__(
            "a cap was set, and this judge has no price; add one by [judge] prices = FILE"
        )


def require_price(pricing: Pricing) -> None:
    """Find out at once whether a cap can be kept.

    Raises:
        PriceUnknown: Nobody knows what a query may cost.
    """
    if pricing.worst_usd([]) is None:
        raise PriceUnknown


@dataclass(frozen=True)
class Budget:
    """How much may be spent on a tournament."""

    cap_usd: float
    pricing: Pricing

    def affordable(
        self, queries: Sequence[OpenQuery], *, spent_usd: float, uncertain_usd: float = 0.0
    ) -> Sequence[OpenQuery]:
        """Return the longest start of the queries that cannot cost more than is left.

        Args:
            queries: What is to be asked.
            spent_usd: What is paid.
            uncertain_usd: What is in flight or was perhaps billed, at the worst.

        Raises:
            BudgetReached: Not even the first is affordable.
            PriceUnknown: Nobody knows what a query may cost.
        """
        left, n_affordable, next_usd = self.cap_usd - spent_usd - uncertain_usd, 0, 0.0
        for query in queries:
            next_usd = self._worst_usd(query)
            if next_usd > left:
                break
            left, n_affordable = left - next_usd, n_affordable + 1
        if not n_affordable:
            raise BudgetReached(self.cap_usd, spent_usd + uncertain_usd, next_usd)
        return queries[:n_affordable]

    def _worst_usd(self, query: OpenQuery) -> float:
        worst = self.pricing.worst_usd([query.asked])
        if worst is None:
            raise PriceUnknown
        return worst
