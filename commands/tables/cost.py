"""What judging would cost, in words and as data."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from commands.consent import dollars
from commands.plan_cost import PlannedCost, Way
from ledger.identity import Json
from projections.tournament.estimate import Basis

_BASES: Final[Mapping[Basis, str]] = MappingProxyType(
    {
        "replies": "tokens as in the replies of this judge that are on record",
        "another judge": "an estimate: tokens as in replies of another judge; a few of this"
        " judge's own would measure them: `tourney apply judge --limit 36`, then plan again",
        "counts": "an estimate: the provider counted prompts, and nobody knows yet how long"
        " replies are; a pilot would measure them",
        "nothing": "an estimate: tokens are guessed from bytes; a pilot would measure them",
    }
)


def cost_notes(cost: PlannedCost) -> Iterator[str]:
    """Say what is expected, in each way; what is spent already; and what to know about it."""
    for way in cost.ways:
        yield f"{_name(way)}: {dollars(way.expected_usd)}, at worst {dollars(way.worst_usd)}"
    yield _BASES[cost.basis]
    yield _standing(cost)
    if any(way.expected_usd is None for way in cost.ways):
        yield f"{cost.model} is in no price table; add a row by [judge] prices = FILE"
    elif cost.n_least_cached is None and any(way.cache != "off" for way in cost.ways):
        yield f"from how many tokens on {cost.model} caches a prefix is not known"
    for dimension, n_tokens in cost.too_short.items():
        yield (
            f"{dimension}: caching does nothing, its prefix of {n_tokens} tokens is below the"
            f" {cost.n_least_cached} from which {cost.model} caches"
        )


def _name(way: Way) -> str:
    asked = "in batches" if way.in_batch else "one by one"
    cached = "no cache" if way.cache == "off" else f"cache {way.cache}"
    return f"{asked}, {cached}{' (as set)' if way.is_chosen else ''}"


def _standing(cost: PlannedCost) -> str:
    parts = [f"{dollars(cost.spent_usd)} spent"]
    if cost.n_in_flight:
        worst = dollars(cost.in_flight_usd)
        parts.append(f"{cost.n_in_flight} queries in flight, {worst} at worst")
    parts.append("no cap" if cost.cap_usd is None else f"cap {dollars(cost.cap_usd)}")
    return ", ".join(parts)


def cost_fields(cost: PlannedCost) -> dict[str, Json]:
    """Return the same as data; null where it is not known."""
    return {
        "model": cost.model,
        "basis": cost.basis,
        "is_measured": cost.basis == "replies",
        "ways": [dict(way._asdict()) for way in cost.ways],
        "spent_usd": cost.spent_usd,
        "cap_usd": cost.cap_usd,
        "n_in_flight": cost.n_in_flight,
        "in_flight_at_worst_usd": cost.in_flight_usd,
        "min_cacheable_tokens": cost.n_least_cached,
        "prefix_tokens": {str(name): n for name, n in cost.prefixes.items()},
    }
