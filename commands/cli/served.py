"""Entrants behind endpoints, on the command line: what they cost so far, and consent to more."""

from collections.abc import Iterable
from functools import partial
from itertools import chain
from math import fsum

from commands.cli.consenting import agree_to, require_somebody
from commands.cli.workshop import Workshop
from commands.consent import Offer, require_never_above_cap
from commands.exposure import Exposure
from commands.priced import prices_of, pricing_for
from commands.prices import PriceTable
from commands.recorder import Recorder
from commands.served_cost import (
    RESPONSE_EVENTS,
    Request,
    responses_used,
    served_costs,
    spent_usd,
)
from commands.served_evaluations import answers_used
from projections.evaluations import EVALUATION_EVENTS, evaluations_of
from projections.fold import fold


def spent_at_servers(recorder: Recorder, prices: PriceTable) -> float:
    """Return what the answers of entrants behind endpoints cost, responses and evaluations.

    What an entrant took that is no longer on the roster was paid, too; what another tournament of
    the ledger asked for, that one paid.
    """
    state, read = recorder.state, partial(recorder.ledger.read, stream=recorder.state.stream)
    known = fold(evaluations_of(state.stream), read(types=EVALUATION_EVENTS))
    responses = responses_used(state, read(types=RESPONSE_EVENTS))
    return spent_usd(chain(responses, answers_used(known, state.entrants)), prices)


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
