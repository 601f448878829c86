"""What entrants behind endpoints took so far, and what it cost by the prices of today."""

from collections.abc import Iterable
from typing import NamedTuple

from commands.prices import PriceTable
from commands.served_cost import Used, spent_usd
from ledger.identity import EntrantId


class ServedSpend(NamedTuple):
    """What one entrant's answers took from one model."""

    entrant_id: EntrantId
    model: str  # as the server calls it
    n_answers: int  # to prompts of the bank and of evaluations
    n_input: int
    n_output: int
    usd: float | None  # None: the price is not known
    price_table: str | None  # which it was found in


def served_spend(used: Iterable[Used], prices: PriceTable) -> tuple[ServedSpend, ...]:
    """Add up what answers took, by entrant and model; weights on this machine cost nothing."""
    groups: dict[tuple[EntrantId, str], list[Used]] = {}
    for each in used:
        if each.entrant.loader == "endpoint":
            key = (each.entrant.entrant_id, each.entrant.weights)
            groups.setdefault(key, []).append(each)
    return tuple(_added_up(*key, group, prices) for key, group in sorted(groups.items()))


def _added_up(
    entrant_id: EntrantId, model: str, used: list[Used], prices: PriceTable
) -> ServedSpend:
    priced = prices.of(model)
    return ServedSpend(
        entrant_id=entrant_id,
        model=model,
        n_answers=len(used),
        n_input=sum(each.usage.n_input for each in used),
        n_output=sum(each.usage.n_output for each in used),
        usd=None if priced is None else spent_usd(used, prices),
        price_table=None if priced is None else priced.source.title,
    )
