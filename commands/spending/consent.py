"""Use case: ask the user for consent before money is spent, within the cap."""

from collections.abc import Iterable, Iterator, Sequence

from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.ports import Console
from commands.spending.budget import (
    Offer,
    PriceUnknown,
    SpendingOptions,
    dollars,
    have_no_price,
    no_price,
    total_usd,
)
from commands.spending.endpoints import EndpointCost, Request, endpoint_costs
from commands.spending.pricing import PriceBook


def require_consent(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Require that an offer is within its cap, and that the user agrees to it.

    Raises:
        Refused: It is not, or not confirmed; nothing was sent.
    """
    require_allowed([offer], spending, console)
    require_yes(offer, spending, console)


def require_allowed(offers: Sequence[Offer], spending: SpendingOptions, console: Console) -> None:
    """Require that offers are within their caps, and that somebody is there to agree.

    Raises:
        Refused: A cap is too low or cannot be kept, or there is neither --yes nor a terminal; all
            of it is said at once.
    """
    faults = [*_above_caps(offers), *_unheard(offers, spending, console)]
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise Refused("\n".join(map(str, faults)))


def require_yes(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Ask for consent, if --yes does not give it.

    Raises:
        Refused: It is not confirmed; nothing was sent.
    """
    if not (spending.agreed or (console.confirm and console.confirm(offer.question))):
        raise Refused("not confirmed: nothing was sent")


def _above_caps(offers: Sequence[Offer]) -> Iterator[Refused]:
    """Yield why caps rule out offers."""
    if unpriced := _unpriced(offer for offer in offers if offer.cap_usd is not None):
        yield PriceUnknown(*unpriced)
    offer = next((offer for offer in offers if offer.is_above_cap), None)
    if offer is not None:
        yield Refused(
            f"the cap is {dollars(offer.cap_usd)}: {dollars(offer.spent_usd)} is spent, and"
            f" {offer.requests} would cost about {dollars(offer.expected_usd)} more; raise"
            " --max-usd or [judge] max_usd, or send fewer requests with `tourney apply ... --limit`"
        )


def _unheard(
    offers: Sequence[Offer], spending: SpendingOptions, console: Console
) -> Iterator[Refused]:
    """Yield that nobody can agree to offers: there is no terminal, and no --yes."""
    if not offers or spending.agreed or console.confirm is not None:
        return
    models = dict.fromkeys(model for offer in offers for model in offer.models)
    cost, remedy = "cost money", "--yes --max-usd N"
    if unpriced := _unpriced(offers):
        cost = f"may cost money ({have_no_price(*unpriced)})"
        remedy = "--yes, or add a price with [judge] prices = FILE"
    yield Refused(
        f"requests to {', '.join(models)} {cost}, and there is no terminal to confirm: run again"
        f" with {remedy}; `tourney plan generate`, `judge` or `evaluate` shows the cost"
    )


def _unpriced(offers: Iterable[Offer]) -> Iterable[str]:
    return dict.fromkeys(model for offer in offers for model in offer.unpriced)


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
        require_allowed([offer], spending, console)
    unpriced = _without_price(endpoint_costs(requests, book.table))
    if unpriced and spending.max_usd is not None:
        console.tell(f"{no_price(*unpriced)}; until then --max-usd does not count it")
    if offer is not None:
        require_yes(offer, spending, console)


def _without_price(costs: Iterable[EndpointCost]) -> Iterable[str]:
    return dict.fromkeys(cost.model for cost in costs if cost.expected_usd is None)


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
    return Offer(
        n_queries=sum(cost.n_requests for cost in costs),
        models=tuple(dict.fromkeys(cost.model for cost in costs)),
        expected_usd=total_usd(cost.expected_usd for cost in costs),
        worst_usd=total_usd(cost.worst_usd for cost in costs),
        spent_usd=state.spent_usd + state.requests.usd,
        cap_usd=spending.max_usd,
        unpriced=tuple(_without_price(costs)),
    )
