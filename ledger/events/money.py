"""Tokens of a reply, their price, and what it cost."""

from operator import add
from typing import Final

from msgspec.structs import astuple

from ledger.events.values import Count, Dollars, Value


class Usage(Value, frozen=True):
    """A reply's token counts by the provider; cached tokens are not counted as input again."""

    n_input: Count
    n_output: Count
    n_cache_write_5m: Count = 0
    n_cache_write_1h: Count = 0
    n_cache_read: Count = 0

    @property
    def n_cached(self) -> int:
        """Tokens written to the cache or read from it."""
        return self.n_cache_write_5m + self.n_cache_write_1h + self.n_cache_read

    @property
    def n_prompt(self) -> int:
        """Tokens of the whole prompt, cached or not."""
        return self.n_input + self.n_cached

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of both counts."""
        return Usage(*map(add, astuple(self), astuple(other)))


class Price(Value, frozen=True):
    """US dollars per million tokens, at the time a reply was read."""

    input: Dollars
    output: Dollars
    cache_write_5m: Dollars
    cache_write_1h: Dollars
    cache_read: Dollars
    table: str  # which table it is from, and of what date


_PER: Final = 1_000_000  # prices are for a million tokens


def cost_usd(usage: Usage, price: Price) -> float:
    """Return the cost of a reply in US dollars."""
    millionths = (
        usage.n_input * price.input
        + usage.n_output * price.output
        + usage.n_cache_write_5m * price.cache_write_5m
        + usage.n_cache_write_1h * price.cache_write_1h
        + usage.n_cache_read * price.cache_read
    )
    return millionths / _PER
