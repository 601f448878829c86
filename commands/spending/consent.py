"""Consent: the cost of an offer, in dollars, against the cap and the user's answer."""

from dataclasses import dataclass
from typing import Final

from commands.errors import Refused
from commands.ports import Confirm

ANTHROPIC_PROVIDERS: Final = frozenset({"anthropic", "anthropic-batch"})  # need a key, cost money
ANTHROPIC_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")  # where the SDK looks


@dataclass(frozen=True)
class SpendingOptions:
    """How far one command may spend."""

    agreed: bool = False  # by --yes
    max_usd: float | None = None  # None: only the settings' cap
    limit: int | None = None  # requests at most; None: all that is missing


@dataclass(frozen=True)
class Offer:
    """The cost of requests that await consent; None: the price is unknown."""

    n_queries: int
    model: str  # the provider's name for it
    expected_usd: float | None
    worst_usd: float | None
    spent_usd: float
    cap_usd: float | None
    uncertain_usd: float = 0.0  # in flight, or perhaps billed: at the worst

    @property
    def question(self) -> str:
        """The question to the user."""
        requests = f"{self.n_queries:,} request{'s' if self.n_queries > 1 else ''}"
        cap = "" if self.cap_usd is None else f", cap {dollars(self.cap_usd)}"
        return (
            f"Submit {requests} to {self.model} for about {dollars(self.expected_usd)}"
            f" (at worst {dollars(self.worst_usd)}{cap})?"
        )


def dollars(usd: float | None) -> str:
    """Format dollars, with four digits below a dollar; `$?` is an unknown amount."""
    if usd is None:
        return "$?"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def require_within_cap(offer: Offer) -> None:
    """Require that the expected cost fits under the cap.

    Raises:
        Refused: It does not, or the model has no price.
    """
    if offer.cap_usd is None:
        return
    if offer.expected_usd is None:
        raise Refused(
            f"{offer.model} has no price, so a cap cannot be kept; add one with [judge] prices ="
            " FILE"
        )
    if offer.spent_usd + offer.expected_usd > offer.cap_usd:
        raise Refused(
            f"the cap is {dollars(offer.cap_usd)}: {dollars(offer.spent_usd)} is spent, and this"
            f" would cost about {dollars(offer.expected_usd)} more; raise --max-usd or [judge]"
            " max_usd, or send fewer requests with `tourney apply ... --limit`"
        )


def require_worst_within_cap(offer: Offer) -> None:
    """Require that even the worst case fits under the cap.

    Raises:
        Refused: It does not.
    """
    worst_usd, bound_usd = offer.worst_usd or 0.0, offer.spent_usd + offer.uncertain_usd
    if offer.cap_usd is not None and bound_usd + worst_usd > offer.cap_usd:
        raise Refused(
            f"the cap is {dollars(offer.cap_usd)}: {dollars(bound_usd)} is spent, in flight or"
            f" perhaps billed, and {offer.model} may cost up to {dollars(worst_usd)} more; raise"
            " --max-usd, or send fewer requests with `tourney apply ... --limit`"
        )


def require_consent(offer: Offer, *, agreed: bool, confirm: Confirm | None) -> None:
    """Ask for consent before money is spent; without a terminal the answer is no.

    Raises:
        Refused: It is not confirmed; nothing was sent.
    """
    if agreed:
        return
    if confirm is None:
        raise Refused(f"{offer.question} No terminal is here to confirm: run again with --yes")
    if not confirm(offer.question):
        raise Refused("not confirmed: nothing was sent")
