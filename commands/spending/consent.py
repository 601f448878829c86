"""Use case: ask the user for consent before money is spent, within the cap."""

from collections.abc import Iterable
from math import fsum

from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.ports import Console
from commands.spending.budget import PriceUnknown
from commands.spending.endpoints import Request, endpoint_costs
from commands.spending.offer import Offer, SpendingOptions, dollars, no_price
from commands.spending.pricing import PriceBook


def require_someone(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Fail early where consent is needed: no terminal and no --yes.

    Raises:
        Refused: There is no --yes, and no terminal to confirm at.
    """
    if spending.agreed or console.confirm is not None:
        return
    cost, remedy = "cost money", "--yes --max-usd N"
    if offer.unpriced:
        cost = f"may cost money ({', '.join(offer.unpriced)} has no price)"
        remedy = "--yes, or add a price with [judge] prices = FILE"
    raise Refused(
        f"requests to {offer.model} {cost}, and there is no terminal to confirm: run again with"
        f" {remedy}; `tourney plan generate`, `judge` or `evaluate` shows the cost"
    )


def require_yes(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Ask for consent, if --yes does not give it.

    Raises:
        Refused: It is not confirmed; nothing was sent.
    """
    if not (spending.agreed or (console.confirm and console.confirm(offer.question))):
        raise Refused("not confirmed: nothing was sent")


def require_within_cap(offer: Offer) -> None:
    """Check what an offer is expected to cost against the cap.

    Raises:
        Refused: It is above the cap, or its price is unknown; nothing was sent.
    """
    if offer.cap_usd is None:
        return
    if offer.unpriced or offer.expected_usd is None:
        raise PriceUnknown(", ".join(offer.unpriced))
    if offer.spent_usd + offer.expected_usd > offer.cap_usd:
        raise Refused(
            f"the cap is {dollars(offer.cap_usd)}: {dollars(offer.spent_usd)} is spent, and"
            f" {offer.requests} would cost about {dollars(offer.expected_usd)} more; raise"
            " --max-usd or [judge] max_usd, or send fewer requests with `tourney apply ... --limit`"
        )


def approve_requests(
    recorder: Recorder,
    requests: Iterable[Request],
    book: PriceBook,
    spending: SpendingOptions,
    console: Console,
) -> None:
    """Ask for consent to requests to endpoint entrants.

    A model without a price is called without consent if it is on the user's own network; if there
    is a cap, a message says so.

    Raises:
        Refused: It is above the cap, a price is unknown, or it is not confirmed; nothing was sent.
    """
    requests = tuple(requests)
    offer = offer_of_requests(recorder, requests, book, spending)
    if offer is not None:
        require_within_cap(offer)
    if spending.max_usd is not None:
        costs = endpoint_costs(requests, book.table)
        for model in dict.fromkeys(cost.model for cost in costs if cost.expected_usd is None):
            console.tell(f"{no_price(model)}; until then --max-usd does not count it")
    if offer is not None:
        require_someone(offer, spending, console)
        require_yes(offer, spending, console)


def offer_of_requests(
    recorder: Recorder, requests: Iterable[Request], book: PriceBook, spending: SpendingOptions
) -> Offer | None:
    """Return the cost of requests to endpoint entrants that may be billed; None if none may be."""
    costs = [
        cost
        for cost in endpoint_costs(requests, book.table)
        if cost.expected_usd or (cost.expected_usd is None and cost.entrant_id in book.hosted)
    ]
    if not costs:
        return None
    state = recorder.state
    unpriced = dict.fromkeys(cost.model for cost in costs if cost.expected_usd is None)
    return Offer(
        n_queries=sum(cost.n_requests for cost in costs),
        model=", ".join(dict.fromkeys(cost.model for cost in costs)),
        expected_usd=None if unpriced else fsum(cost.expected_usd or 0.0 for cost in costs),
        worst_usd=None if unpriced else fsum(cost.worst_usd or 0.0 for cost in costs),
        spent_usd=state.spent_usd + state.requests.usd,
        cap_usd=spending.max_usd,
        unpriced=tuple(unpriced),
    )
