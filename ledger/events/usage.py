"""What a reply used and what that costs: money is counted from facts, never from a bill's total."""

from ledger.events.fact import Value
from ledger.events.limits import Count, Dollars


class Usage(Value, frozen=True):
    """Tokens of one reply as the provider counted them; what was cached is not input again."""

    n_input: Count
    n_output: Count
    n_cache_write_5m: Count = 0
    n_cache_write_1h: Count = 0
    n_cache_read: Count = 0


class Price(Value, frozen=True):
    """US dollars for a million tokens, as they were known when a reply was read."""

    input: Dollars
    output: Dollars
    cache_write_5m: Dollars
    cache_write_1h: Dollars
    cache_read: Dollars
    table: str  # which table it is from, and of what date
