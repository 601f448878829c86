"""Entrants behind endpoints, on the command line: what they cost so far, and consent to more."""

from collections.abc import Iterable
from math import fsum

from commands.cli.consenting import agree_to, require_somebody
from commands.cli.served_reading import used_on
from commands.cli.workshop import Workshop
from commands.consent import Offer, require_never_above_cap
from commands.exposure import Exposure
from commands.priced import prices_of, pricing_for
from commands.prices import PriceTable
from commands.recorder import Recorder
from commands.served_cost import Request, served_costs, spent_usd


def spent_at_servers(recorder: Recorder, prices: PriceTable) -> float:
    """Return what the answers of entrants behind endpoints cost, responses and evaluations."""
    return spent_usd(used_on(recorder.ledger, recorder.state), prices)


def settle_served(
    recorder: Recorder,
    place: Workshop,
    requests: Iterable[Request],
    *,
    agreed: bool,
    max_usd: float | None,
) -> None:
    """Ask whether requests to endpoints may be paid for; one without a price is its owner's.

    Raises:
        Refused: It might go beyond the cap, the cap cannot be kept, or nobody agreed; nothing was
            sent.
    """
    prices = prices_of(place.settings, place.folder)
    priced = [cost for cost in served_costs(requests, prices) if cost.expected_usd]
    if not priced:
        return
    models = ", ".join(dict.fromkeys(cost.model for cost in priced))
    require_somebody(models, agreed=agreed)
    offer = Offer(
        n_queries=sum(cost.n_requests for cost in priced),
        model=models,
        expected_usd=fsum(cost.expected_usd or 0.0 for cost in priced),
        worst_usd=fsum(cost.worst_usd or 0.0 for cost in priced),
        spent_usd=recorder.state.spent_usd + spent_at_servers(recorder, prices),
        cap_usd=max_usd,
        uncertain_usd=0.0 if max_usd is None else _exposure(recorder, place).usd(),
    )
    require_never_above_cap(offer)
    agree_to(offer, agreed=agreed)


def _exposure(recorder: Recorder, place: Workshop) -> Exposure:
    return Exposure(
        recorder, lambda judge: pricing_for(place.settings, place.folder, judge, recorder.state)
    )
