"""What the user consents to: requests and their cost, within the cap, kept against the worst case.

`n_affordable` requests are allowed by the cap, whoever is asked; `at_risk_usd` bounds the charges
that are not settled.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from commands.errors import Refused
from projections.tournament.state import Tournament

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


class BudgetReached(Refused):
    """The next request might cost more than is left."""

    def __init__(self, cap_usd: float, bound_usd: float, next_usd: float) -> None:
        super().__init__(
            f"the cap is {dollars(cap_usd)}: ${bound_usd:.4f} is spent, in flight or perhaps"
            f" billed, and the next request may cost ${next_usd:.4f}; raise --max-usd or [judge]"
            " max_usd to go on"
        )
        self.cap_usd, self.bound_usd = cap_usd, bound_usd


class PriceUnknown(Refused):
    """The cap cannot be kept: models have no price."""

    def __init__(self, *models: str) -> None:
        super().__init__(
            f"a cap is set, and {have_no_price(*models)}, so it cannot be kept; add one with"
            " [judge] prices = FILE, of 0 where nobody is billed"
        )


def n_affordable(worst_usd: Sequence[float], *, cap_usd: float, bound_usd: float) -> int:
    """Return how many of the first requests cannot cost more than is left of the cap.

    Args:
        worst_usd: What each request costs at worst.
        cap_usd: The cap in dollars.
        bound_usd: Dollars spent, in flight or perhaps billed, at worst.

    Raises:
        BudgetReached: Not even the first is affordable.
    """
    left = cap_usd - bound_usd
    for n_before, next_usd in enumerate(worst_usd):
        if next_usd > left:
            if not n_before:
                raise BudgetReached(cap_usd, bound_usd, next_usd)
            return n_before
        left -= next_usd
    return len(worst_usd)


def at_risk_usd(state: Tournament) -> float:
    """Return an upper bound on charges that are not settled, in dollars.

    They are for judges' requests under way, batches in flight, and requests that were perhaps
    billed: of all judges, whichever process sent them, and not of entrants. A request of unknown
    price counts as nothing.

    Raises:
        Refused: A batch without a known price is in flight.
    """
    in_flight = [batch.planned.worst_usd for batch in state.open_judge_batches]
    if None in in_flight:
        raise Refused(
            "a batch without a known price is in flight: a cap cannot be kept until it ends"
        )
    alone = (sent.worst_usd for sent in state.under_way.values())
    return fsum((state.lost_usd, *(usd or 0.0 for usd in (*in_flight, *alone))))


def everything_usd(state: Tournament) -> float:
    """Return what a tournament spent on judges and entrants, and has at risk, in dollars.

    Raises:
        Refused: A batch without a known price is in flight.
    """
    judged_usd = state.spent_usd + at_risk_usd(state)
    return judged_usd + state.requests.usd + state.requests.at_risk_usd


def strictest_cap(
    state: Tournament, *, of_judges: float | None, of_all: float | None
) -> tuple[float | None, float]:
    """Return the stricter of two caps, and the dollars that count against it besides judging.

    Args:
        state: The tournament, with what it spent on endpoint entrants.
        of_judges: The cap on judging alone; None: there is none.
        of_all: Likewise the cap that covers endpoint entrants, too.
    """
    if of_all is None:
        return of_judges, 0.0
    elsewhere_usd = state.requests.usd + state.requests.at_risk_usd
    if of_judges is not None and of_judges < of_all - elsewhere_usd:
        return of_judges, 0.0
    return of_all, elsewhere_usd
