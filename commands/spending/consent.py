"""Consent: what is about to be spent, in dollars, and whether somebody agreed to it."""

from dataclasses import dataclass
from typing import Final

from commands.errors import Refused
from commands.ports import Confirm

ANTHROPIC_PROVIDERS: Final = frozenset({"anthropic", "anthropic-batch"})  # providers: key and money
ANTHROPIC_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")  # where the SDK looks


@dataclass(frozen=True)
class SpendingOptions:
    """How far one command may spend."""

    agreed: bool = False  # beforehand, by --yes
    max_usd: float | None = None  # None: no cap but that of the settings
    limit: int | None = None  # requests at most; None: all that is missing


@dataclass(frozen=True)
class Offer:
    """What asking would cost; None: nobody knows the price."""

    n_queries: int
    model: str  # as its provider names it
    expected_usd: float | None
    worst_usd: float | None
    spent_usd: float
    cap_usd: float | None
    uncertain_usd: float = 0.0  # in flight, or perhaps billed: at the worst

    @property
    def question(self) -> str:
        """Ask, with the dollars in it."""
        requests = f"{self.n_queries:,} request{'s' if self.n_queries > 1 else ''}"
        cap = "" if self.cap_usd is None else f", cap {dollars(self.cap_usd)}"
        return (
            f"Submit {requests} to {self.model} for about {dollars(self.expected_usd)}"
            f" (at worst {dollars(self.worst_usd)}{cap})?"
        )


def dollars(usd: float | None) -> str:
    """Say an amount: cents, or what is left of them; a price that nobody knows is no $0."""
    if usd is None:
        return "$?"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def require_within_cap(offer: Offer) -> None:
    """Send nothing that is expected to cost more than is allowed.

    Raises:
        Refused: The cap is below what was spent and what is expected, or cannot be kept.
    """
    if offer.cap_usd is None:
        return
    if offer.expected_usd is None:
        raise Refused(
            f"{offer.model} has no price, so a cap cannot be kept; add one by [judge] prices = FILE"
        )
    if offer.spent_usd + offer.expected_usd > offer.cap_usd:
        raise Refused(
            f"{dollars(offer.expected_usd)} are expected and {dollars(offer.spent_usd)} spent, and"
            f" the cap is {dollars(offer.cap_usd)}; raise --max-usd or [judge] max_usd, or ask"
            " less by `tourney apply ... --limit`"
        )


def require_worst_within_cap(offer: Offer) -> None:
    """Send nothing that could cost more than is allowed, whatever comes of it.

    Raises:
        Refused: The cap is below what was spent, or may have been, and what it costs at worst.
    """
    worst_usd, bound_usd = offer.worst_usd or 0.0, offer.spent_usd + offer.uncertain_usd
    if offer.cap_usd is not None and bound_usd + worst_usd > offer.cap_usd:
        raise Refused(
            f"{offer.model} may cost {dollars(worst_usd)} at worst, {dollars(bound_usd)} are spent,"
            f" in flight or perhaps billed, and the cap is {dollars(offer.cap_usd)}; raise"
            " --max-usd, or ask less by `tourney apply ... --limit`"
        )


def require_consent(offer: Offer, *, agreed: bool, confirm: Confirm | None) -> None:
    """Ask before money is spent; where nobody can answer, the answer is no.

    Raises:
        Refused: Nobody agreed; nothing was sent.
    """
    if agreed:
        return
    if confirm is None:
        raise Refused(f"{offer.question} Nobody is here to answer: say --yes to agree beforehand")
    if not confirm(offer.question):
        raise Refused("not agreed to: nothing was sent")
