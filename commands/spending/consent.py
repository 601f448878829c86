"""Use case: ask the user for consent before money is spent, within the cap."""

from collections.abc import Iterable
from math import fsum

from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.ports import Console
from commands.spending.endpoints import Request, endpoint_costs
from commands.spending.offer import Offer, SpendingOptions, dollars, no_price
from commands.spending.pricing import PriceBook


def require_someone(what: str, spending: SpendingOptions, console: Console) -> None:
    """Fail early where consent is needed: no terminal and no --yes.

    Raises:
        Refused: There is no --yes, and no terminal to confirm at.
    """
    if not spending.agreed and console.confirm is None:
        raise Refused(
            f"requests to {what} cost money, and there is no terminal to confirm: run again with"
            " --yes --max-usd N; `tourney plan generate`, `judge` or `evaluate` shows the cost"
        )


def approve(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Check an offer against the cap, and ask for consent.

    Raises:
        Refused: It is above the cap, its price is unknown, or it is not confirmed; nothing was
            sent.
    """
    require_within_cap(offer)
    require_yes(offer, spending, console)


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
    if offer.expected_usd is None:
        raise Refused(
            f"{offer.model} has no price, so a cap cannot be kept; add one with [judge] prices ="
            " FILE"
        )
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

    A model without a price is called without consent; if there is a cap, a message says so.

    Raises:
        Refused: It is above the cap, or not confirmed; nothing was sent.
    """
    requests = tuple(requests)
    if spending.max_usd is not None:
        costs = endpoint_costs(requests, book.table)
        for model in dict.fromkeys(cost.model for cost in costs if cost.expected_usd is None):
            console.tell(f"{no_price(model)}; until then --max-usd does not count it")
    offer = offer_of_requests(recorder, requests, book, spending)
    if offer is not None:
        require_someone(offer.model, spending, console)
        approve(offer, spending, console)


def offer_of_requests(
    recorder: Recorder, requests: Iterable[Request], book: PriceBook, spending: SpendingOptions
) -> Offer | None:
    """Return the cost of requests to endpoint entrants that have a price; None if none has."""
    costs = endpoint_costs(requests, book.table)
    priced = [cost for cost in costs if cost.expected_usd]
    if not priced:
        return None
    state = recorder.state
    return Offer(
        n_queries=sum(cost.n_requests for cost in priced),
        model=", ".join(dict.fromkeys(cost.model for cost in priced)),
        expected_usd=fsum(cost.expected_usd or 0.0 for cost in priced),
        worst_usd=fsum(cost.worst_usd or 0.0 for cost in priced),
        spent_usd=state.spent_usd + state.requests.usd,
        cap_usd=spending.max_usd,
    )
