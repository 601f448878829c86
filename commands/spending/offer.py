"""What the user consents to: requests and their cost; and the limits that a command sets."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import fsum
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
    models: tuple[str, ...]  # the providers' names for them
    expected_usd: float | None
    worst_usd: float | None
    spent_usd: float
    cap_usd: float | None
    unpriced: tuple[str, ...] = ()  # models without a price
    may_stop: bool = False  # before all is sent: then each request is held against the cap alone

    def with_other(self, other: "Offer") -> "Offer":
        """Return an offer of both, under the other's cap, and by what counts against that."""
        return replace(
            self,
            n_queries=other.n_queries + self.n_queries,
            models=tuple(dict.fromkeys((*other.models, *self.models))),
            expected_usd=total_usd([other.expected_usd, self.expected_usd]),
            worst_usd=total_usd([other.worst_usd, self.worst_usd]),
            spent_usd=other.spent_usd,
            cap_usd=other.cap_usd,
            unpriced=tuple(dict.fromkeys((*other.unpriced, *self.unpriced))),
        )

    @property
    def requests(self) -> str:
        """How many requests to whom."""
        return requests_to(self.n_queries, *self.models)

    @property
    def is_above_cap(self) -> bool:
        """Whether it is expected to cost more than is left of the cap."""
        if self.cap_usd is None or self.may_stop:
            return False
        return self.spent_usd + (self.expected_usd or 0) > self.cap_usd

    @property
    def question(self) -> str:
        """The question to the user."""
        cap = "" if self.cap_usd is None else f", cap {dollars(self.cap_usd)}"
        unknown = f" The price of {', '.join(self.unpriced)} is unknown." if self.unpriced else ""
        return (
            f"Submit {'at most ' if self.may_stop else ''}{self.requests} for about"
            f" {dollars(self.expected_usd)}"
            f" (at worst {dollars(self.worst_usd)}{cap})?{unknown}"
        )


def total_usd(amounts: Iterable[float | None]) -> float | None:
    """Add up dollars; an unknown amount leaves the total unknown."""
    amounts = tuple(amounts)
    return None if None in amounts else fsum(filter(None, amounts))


def dollars(usd: float | None) -> str:
    """Format dollars, with four digits below a dollar; `$?` is an unknown amount."""
    if usd is None:
        return "$?"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def requests_to(n: int, *models: str) -> str:
    """Say how many requests models are sent."""
    return f"{n:,} {'request' if n == 1 else 'requests'} to {', '.join(models)}"


def have_no_price(*models: str) -> str:
    """Say that models have no price."""
    return f"{', '.join(models)} {'has' if len(models) == 1 else 'have'} no price"


def no_price(*models: str) -> str:
    """Say that models have no price, and where to name one."""
    return f"{have_no_price(*models)}; to add one, set [judge] prices = FILE to a price table"
