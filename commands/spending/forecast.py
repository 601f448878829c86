"""Use case: what judging would cost, asked in each of the ways that there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from commands.ports import TokenCounter
from commands.settings.schema import CacheTtl
from commands.spending.pricing import TokenPricing
from ledger.identity import Digest, Dimension
from projections.tournament.estimate import Basis, CountedQuery
from projections.tournament.progress import OpenQuery
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery

COUNTED_OF_EACH: Final = 8  # prompts of a dimension


class Tokens(NamedTuple):
    """What queries are likely to take, asked once."""

    n_input: int
    n_output: int


NO_TOKENS: Final = Tokens(0, 0)


class SubmissionOption(NamedTuple):
    """A way to ask, and what it costs; None: the price is not known."""

    in_batch: bool
    cache: CacheTtl
    is_chosen: bool  # it is how the settings ask
    expected_usd: float | None
    worst_usd: float | None  # of every asking and asking again


@dataclass(frozen=True)
class PlannedCost:
    """What is expected, what is spent, and what stands in its way."""

    model: str
    basis: Basis
    tokens: Mapping[Dimension, Tokens]
    ways: tuple[SubmissionOption, ...]
    spent_usd: float
    cap_usd: float | None
    n_in_flight: int
    in_flight_usd: float | None  # at worst; None: not known
    n_least_cached: int | None  # tokens, of the shortest prefix that the provider keeps
    prefixes: Mapping[Dimension, int]  # tokens, likely

    @property
    def too_short(self) -> Mapping[Dimension, int]:
        """The prefixes that no cache will keep."""
        least = self.n_least_cached or 0
        return {dimension: n for dimension, n in self.prefixes.items() if n < least}


def plan_cost(
    state: Tournament,
    queries: Sequence[OpenQuery],
    pricing: TokenPricing,
    *,
    cap_usd: float | None,
) -> PlannedCost:
    """Return what open queries would cost."""
    groups = _by_dimension(queries)
    in_flight = [batch.planned for batch in state.open_batches]
    return PlannedCost(
        model=pricing.judge.model,
        basis=pricing.tokens.basis,
        tokens={dimension: _tokens(pricing, group) for dimension, group in groups.items()},
        ways=_ways(queries, pricing),
        spent_usd=state.spent_usd,
        cap_usd=cap_usd,
        n_in_flight=sum(len(planned.queries) for planned in in_flight),
        in_flight_usd=_sum_of_known([planned.worst_usd for planned in in_flight]),
        n_least_cached=pricing.prices.min_cacheable(pricing.judge.model),
        prefixes={
            dimension: pricing.tokens.expected(group[0].asked).n_prefix
            for dimension, group in groups.items()
        },
    )


def counted_sample(queries: Sequence[OpenQuery], counter: TokenCounter) -> tuple[CountedQuery, ...]:
    """Have the provider count a few prompts of each dimension, evenly out of all."""
    chosen: dict[Digest, JudgeQuery] = {}
    for group in _by_dimension(queries).values():
        step = -(-len(group) // COUNTED_OF_EACH)
        chosen.update({query.asked.query_key: query.asked for query in group[::step]})
    counts = counter.count(list(chosen.values()))
    return tuple(CountedQuery(chosen[key], n_input) for key, n_input in counts.items())


def _by_dimension(queries: Sequence[OpenQuery]) -> dict[Dimension, list[OpenQuery]]:
    groups: dict[Dimension, list[OpenQuery]] = {}
    for query in queries:
        groups.setdefault(query.match.pairing.rubric.dimension, []).append(query)
    return groups


def _tokens(pricing: TokenPricing, group: Sequence[OpenQuery]) -> Tokens:
    expected = [pricing.tokens.expected(query.asked) for query in group]
    return Tokens(sum(each.n_input for each in expected), sum(each.n_output for each in expected))


def _ways(queries: Sequence[OpenQuery], chosen: TokenPricing) -> tuple[SubmissionOption, ...]:
    """Return the ways to ask, one by one before in batches, plain before cached."""
    if chosen.judge.provider == "endpoint":
        return (_way(queries, chosen, chosen),)
    ttl: CacheTtl = "5m" if chosen.cache == "off" else chosen.cache
    caches: tuple[CacheTtl, ...] = ("off", ttl)
    return tuple(
        _way(queries, replace(chosen, in_batch=in_batch, cache=cache), chosen)
        for in_batch in (False, True)
        for cache in caches
    )


def _way(
    queries: Sequence[OpenQuery], pricing: TokenPricing, chosen: TokenPricing
) -> SubmissionOption:
    asked = [query.asked for query in queries]
    worst = pricing.worst_usd(asked)
    return SubmissionOption(
        pricing.in_batch,
        pricing.cache,
        is_chosen=(pricing.in_batch, pricing.cache) == (chosen.in_batch, chosen.cache),
        expected_usd=pricing.expected_usd(asked),
        worst_usd=None if worst is None else worst * (1 + pricing.retries),
    )


def _sum_of_known(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
