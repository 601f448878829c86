"""What tokens cost: dollars from what was counted and the price that held, never from a guess."""

from typing import Final

from ledger.events.values import Price, Usage

_PER: Final = 1_000_000  # prices are for a million tokens


def cost_usd(usage: Usage, price: Price) -> float:
    """Return what a reply cost, in US dollars."""
    millionths = (
        usage.n_input * price.input
        + usage.n_output * price.output
        + usage.n_cache_write_5m * price.cache_write_5m
        + usage.n_cache_write_1h * price.cache_write_1h
        + usage.n_cache_read * price.cache_read
    )
    return millionths / _PER
