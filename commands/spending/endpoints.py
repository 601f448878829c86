"""The cost of endpoint entrants: of requests to come, and of answers on record."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from commands.spending.price_table import PriceTable
from ledger.events.money import Usage, cost_usd
from ledger.events.registration import Entrant
from ledger.identity import EntrantId
from projections.tournament.estimate import BYTES_PER_TOKEN, FRAME_TOKENS, n_bytes
from projections.tournament.requests import EntrantRequests


class Request(NamedTuple):
    """A prompt to send to an entrant."""

    entrant: Entrant
    prompt_text: str


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


def endpoint_costs(requests: Iterable[Request], prices: PriceTable) -> tuple[EndpointCost, ...]:
    """Estimate the cost of endpoint entrants; weights on this machine cost nothing.

    The price is that of the model's name in the table. Every answer counts at its maximum length.
    """
    by_entrant: dict[Entrant, list[str]] = {}
    for entrant, prompt_text in requests:
        if entrant.loader == "endpoint":
            by_entrant.setdefault(entrant, []).append(prompt_text)
    return tuple(_cost(entrant, texts, prices) for entrant, texts in by_entrant.items())


def _cost(entrant: Entrant, texts: list[str], prices: PriceTable) -> EndpointCost:
    n_output = entrant.max_new_tokens
    likely = [Usage(round(_n_sent(entrant, text) / BYTES_PER_TOKEN), n_output) for text in texts]
    worst = [_at_worst(entrant, text) for text in texts]
    return EndpointCost(
        entrant_id=entrant.entrant_id,
        model=entrant.weights,
        n_requests=len(texts),
        n_input=sum(each.n_input for each in likely),
        n_output=sum(each.n_output for each in likely),
        expected_usd=_usd(entrant.weights, likely, prices),
        worst_usd=_usd(entrant.weights, worst, prices),
    )


def _usd(model: str, usages: Iterable[Usage], prices: PriceTable) -> float | None:
    priced = prices.of(model)
    if priced is None:
        return None
    return fsum(cost_usd(usage, priced.price(usage, in_batch=False)) for usage in usages)


def request_worst_usd(entrant: Entrant, prompt_text: str, prices: PriceTable) -> float | None:
    """Return what one request costs at worst; None: the price is unknown."""
    return _usd(entrant.weights, [_at_worst(entrant, prompt_text)], prices)


def _at_worst(entrant: Entrant, prompt_text: str) -> Usage:
    """Return the usage if every byte were a token, and the answer as long as may be."""
    return Usage(_n_sent(entrant, prompt_text) + FRAME_TOKENS, entrant.max_new_tokens)


def _n_sent(entrant: Entrant, prompt_text: str) -> int:
    """Return the bytes of a prompt with the text around it and the system prompt."""
    whole = entrant.chosen.around(prompt_text) + (entrant.chosen.system or "")
    return n_bytes(whole)


class EndpointSpend(NamedTuple):
    """The tokens and the cost of one entrant's answers from one model."""

    entrant_id: EntrantId
    model: str  # the server's name for it
    n_answers: int  # to prompts of the bank and of evaluations
    n_input: int
    n_output: int
    usd: float | None  # None: the price of some answer was unknown
    price_table: str | None  # where the newest price is from
    n_maybe_billed: int  # requests without an answer
    maybe_usd: float  # for those, at worst


def endpoint_spend(requests: EntrantRequests) -> tuple[EndpointSpend, ...]:
    """Return what each entrant took from each model, at the prices of their time."""
    return tuple(
        EndpointSpend(
            entrant_id=key.entrant,
            model=key.model,
            n_answers=bill.n_replies,
            n_input=bill.tokens.n_input,
            n_output=bill.tokens.n_output,
            usd=None if bill.n_unpriced else bill.usd,
            price_table=requests.price_tables.get(key),
            n_maybe_billed=bill.n_maybe_billed,
            maybe_usd=bill.maybe_usd,
        )
        for key, bill in sorted(requests.bills.items())
    )
