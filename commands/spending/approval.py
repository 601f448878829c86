"""Use case: ask for consent before money is spent, at the console if there is a terminal."""

from collections.abc import Iterable
from math import fsum

from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.ports import Console
from commands.spending.budget import Exposure
from commands.spending.consent import (
    Offer,
    SpendingOptions,
    require_consent,
    require_within_cap,
    require_worst_within_cap,
)
from commands.spending.endpoints import Request, endpoint_costs, spent_at_endpoints
from commands.spending.pricing import PriceBook


def require_someone(what: str, spending: SpendingOptions, console: Console) -> None:
    """Fail early where consent is needed: no terminal and no --yes.

    Raises:
        Refused: There is no --yes, and no terminal to confirm at.
    """
    if not spending.agreed and console.confirm is None:
        raise Refused(
            f"requests to {what} cost money, and no terminal is here to confirm: run again with"
            " --yes --max-usd N; `tourney plan` shows the cost"
        )


def approve(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Check an offer against the cap, and ask for consent.

    Raises:
        Refused: It is above the cap, or not confirmed; nothing was sent.
    """
    require_within_cap(offer)
    require_consent(offer, agreed=spending.agreed, confirm=console.confirm)


def approve_requests(
    recorder: Recorder,
    requests: Iterable[Request],
    book: PriceBook,
    spending: SpendingOptions,
    console: Console,
) -> None:
    """Ask for consent to requests to endpoint entrants.

    A model without a price is called without asking.

    Raises:
        Refused: It might exceed the cap, the cap cannot be kept, or it is not confirmed; nothing
            was sent.
    """
    priced = [cost for cost in endpoint_costs(requests, book.table) if cost.expected_usd]
    if not priced:
        return
    models = ", ".join(dict.fromkeys(cost.model for cost in priced))
    require_someone(models, spending, console)
    exposure = Exposure(recorder, lambda judge: book.pricing(judge, recorder.state))
    elsewhere_usd = spent_at_endpoints(recorder.ledger, recorder.state, book.table)
    offer = Offer(
        n_queries=sum(cost.n_requests for cost in priced),
        model=models,
        expected_usd=fsum(cost.expected_usd or 0.0 for cost in priced),
        worst_usd=fsum(cost.worst_usd or 0.0 for cost in priced),
        spent_usd=recorder.state.spent_usd + elsewhere_usd,
        cap_usd=spending.max_usd,
        uncertain_usd=0.0 if spending.max_usd is None else exposure.usd(),
    )
    require_worst_within_cap(offer)
    approve(offer, spending, console)
