"""What the user consents to: requests and their cost; and the limits that a command sets."""

from dataclasses import dataclass, replace
from typing import Final

PAID_PROVIDERS: Final = frozenset({"anthropic", "anthropic-batch", "openai-batch"})
"""Those that cost money, whether or not their price is known."""


@dataclass(frozen=True)
class SpendingOptions:
    """How far one command may spend."""

    agreed: bool = False  # by --yes
    max_usd: float | None = None  # None: only the settings' cap
    limit: int | None = None  # requests at most; None: all that is missing


@dataclass(frozen=True)
class Offer:
    """The cost of requests that await consent; None: the price is unknown."""

    n_queries: int
    model: str  # the provider's name for it
    expected_usd: float | None
    worst_usd: float | None
    spent_usd: float
    cap_usd: float | None
    unpriced: tuple[str, ...] = ()  # models without a price

    def with_other(self, other: "Offer") -> "Offer":
        """Return an offer of both, under the other's cap, and by what counts against that."""
        return replace(
            self,
            n_queries=other.n_queries + self.n_queries,
            model=f"{other.model}, {self.model}",
            expected_usd=_sum(other.expected_usd, self.expected_usd),
            worst_usd=_sum(other.worst_usd, self.worst_usd),
            spent_usd=other.spent_usd,
            cap_usd=other.cap_usd,
            unpriced=(*other.unpriced, *self.unpriced),
        )

    @property
    def requests(self) -> str:
        """How many requests to whom."""
        return f"{self.n_queries:,} request{'s' if self.n_queries > 1 else ''} to {self.model}"

    @property
    def question(self) -> str:
        """The question to the user."""
        cap = "" if self.cap_usd is None else f", cap {dollars(self.cap_usd)}"
        unknown = f" The price of {', '.join(self.unpriced)} is unknown." if self.unpriced else ""
        return (
            f"Submit {self.requests} for about {dollars(self.expected_usd)}"
            f" (at worst {dollars(self.worst_usd)}{cap})?{unknown}"
        )


def _sum(one_usd: float | None, other_usd: float | None) -> float | None:
    return None if one_usd is None or other_usd is None else one_usd + other_usd


def dollars(usd: float | None) -> str:
    """Format dollars, with four digits below a dollar; `$?` is an unknown amount."""
    if usd is None:
        return "$?"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def no_price(model: str) -> str:
    """Say that a model has no price, and where to name one."""
    return f"{model} has no price; to add one, set [judge] prices = FILE to a price table"
