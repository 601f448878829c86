"""The cost of requests to come, to endpoint entrants."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from commands.spending.price_table import PriceTable
from ledger.events.money import Usage, cost_usd
from ledger.events.registration import Entrant
from ledger.identity import EntrantId
from projections.tournament.estimate import BYTES_PER_TOKEN, FRAME_TOKENS, n_bytes


class Request(NamedTuple):
    """A prompt to send to an entrant."""

    entrant: Entrant
    prompt_text: str
    in_batch: bool = False


@dataclass(frozen=True)
class EndpointCost:
    """The estimated cost of requests to one entrant; None: the price is unknown."""

    entrant_id: EntrantId
    model: str  # the server's name for it
    n_requests: int
    n_input: int  # tokens, estimated from bytes
    n_output: int  # tokens, at most
    expected_usd: float | None
    worst_usd: float | None  # if every byte were a token
    in_batch: bool


def endpoint_costs(requests: Iterable[Request], prices: PriceTable) -> tuple[EndpointCost, ...]:
    """Estimate the cost of endpoint entrants; weights on this machine cost nothing.

    The price is that of the model's name in the table. Every answer counts at its maximum length.
    """
    texts: dict[tuple[Entrant, bool], list[str]] = {}
    for entrant, prompt_text, in_batch in requests:
        if entrant.loader == "endpoint":
            texts.setdefault((entrant, in_batch), []).append(prompt_text)
    return tuple(
        _cost(entrant, each, prices, in_batch=in_batch)
        for (entrant, in_batch), each in texts.items()
    )


def _cost(
    entrant: Entrant, texts: list[str], prices: PriceTable, *, in_batch: bool
) -> EndpointCost:
    n_output = entrant.max_new_tokens
    likely = [Usage(round(_n_sent(entrant, text) / BYTES_PER_TOKEN), n_output) for text in texts]
    worst = [_at_worst(entrant, text) for text in texts]
    return EndpointCost(
        entrant_id=entrant.entrant_id,
        model=entrant.weights,
        n_requests=len(texts),
        n_input=sum(usage.n_input for usage in likely),
        n_output=sum(usage.n_output for usage in likely),
        expected_usd=_usd(entrant.weights, likely, prices, in_batch=in_batch),
        worst_usd=_usd(entrant.weights, worst, prices, in_batch=in_batch),
        in_batch=in_batch,
    )


def _usd(
    model: str, usages: Iterable[Usage], prices: PriceTable, *, in_batch: bool
) -> float | None:
    priced = prices.of(model)
    if priced is None:
        return None
    return fsum(cost_usd(usage, priced.price(usage, in_batch=in_batch)) for usage in usages)


def request_worst_usd(
    entrant: Entrant, prompt_text: str, prices: PriceTable, *, in_batch: bool = False
) -> float | None:
    """Return what one request costs at worst; None: the price is unknown."""
    return _usd(entrant.weights, [_at_worst(entrant, prompt_text)], prices, in_batch=in_batch)


def _at_worst(entrant: Entrant, prompt_text: str) -> Usage:
    """Return the usage if every byte were a token, and the answer as long as may be."""
    further = (entrant.chosen.extra_body or "") + (entrant.chosen.template_arguments or "")
    n_input = _n_sent(entrant, prompt_text) + n_bytes(further) + FRAME_TOKENS
    return Usage(n_input, entrant.max_new_tokens)


def _n_sent(entrant: Entrant, prompt_text: str) -> int:
    """Return the bytes of a prompt with the text around it and the system prompt."""
    whole = entrant.chosen.around(prompt_text) + (entrant.chosen.system or "")
    return n_bytes(whole)
