"""Ask for consent before money is spent; the console says whether anybody can answer."""

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
        Refused: Nobody agreed beforehand, and nobody can be asked.
    """
    if not spending.agreed and console.confirm is None:
        raise Refused(
            f"asking {what} costs money, and no terminal is here to confirm: run again with --yes,"
            " and --max-usd N to set a cap; `tourney plan` tells what it costs"
        )


def approve(offer: Offer, spending: SpendingOptions, console: Console) -> None:
    """Ask whether an offer may be paid for.

    Raises:
        Refused: It is above the cap, or nobody agreed; nothing was sent.
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
    """Ask whether requests to endpoint entrants may be paid for; a model without a price is free.

    Raises:
        Refused: It might go beyond the cap, the cap cannot be kept, or nobody agreed; nothing was
            sent.
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
