"""The cap on spending, kept against the worst case.

`n_affordable` requests are allowed by the cap, whoever is asked; `at_risk_usd` bounds the charges
that are not settled.
"""

from collections.abc import Sequence
from math import fsum

from commands.errors import Refused
from commands.spending.offer import dollars, have_no_price
from projections.tournament.state import Tournament


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
