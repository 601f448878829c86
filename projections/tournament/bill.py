"""A bill: tokens and dollars of some requests, and what those without an answer cost at worst."""

from dataclasses import dataclass
from typing import Any, Final

from ledger.events.money import Usage

NO_TOKENS: Final = Usage(n_input=0, n_output=0)


@dataclass(frozen=True)
class Bill:
    """Tokens and cost of replies; the dollars cover replies of known price."""

    n_replies: int = 0
    n_failed: int = 0  # of the replies: paid for, and no verdict
    n_unpriced: int = 0  # of the replies: nobody knows what they cost
    n_maybe_billed: int = 0  # beside the replies: perhaps paid for, and nobody knows the tokens
    maybe_usd: float = 0.0  # for those, at worst; those of unknown price cost nothing here
    tokens: Usage = NO_TOKENS
    usd: float = 0.0
    failed_usd: float = 0.0  # of the dollars: for replies that held no verdict
    uncached_usd: float = 0.0  # the same tokens, had all input been plain

    def __add__(self, other: "Bill") -> "Bill":
        """Return the sum of both bills."""
        return Bill(
            self.n_replies + other.n_replies,
            self.n_failed + other.n_failed,
            self.n_unpriced + other.n_unpriced,
            self.n_maybe_billed + other.n_maybe_billed,
            self.maybe_usd + other.maybe_usd,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.failed_usd + other.failed_usd,
            self.uncached_usd + other.uncached_usd,
        )

    @property
    def saved_usd(self) -> float:
        """What the provider's cache saved; negative if it cost more."""
        return self.uncached_usd - self.usd

    @property
    def fields(self) -> dict[str, Any]:
        """The bill as data; sums that include a reply of unknown price are None."""
        is_known = not self.n_unpriced
        return {
            "n_replies": self.n_replies,
            "n_failed": self.n_failed,
            "n_unpriced": self.n_unpriced,
            "n_maybe_billed": self.n_maybe_billed,
            "maybe_usd": self.maybe_usd,
            **self.tokens.fields,
            "usd": self.usd if is_known else None,
            "priced_usd": self.usd,
            "failed_usd": self.failed_usd if is_known else None,
            "cache_saved_usd": self.saved_usd if is_known else None,
        }
