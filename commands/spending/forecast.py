"""Use case: forecast the cost of judging, for each way to send the queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final, NamedTuple, TypeVar

from commands.ports import TokenCounter
from commands.settings.schema import CacheTtl
from commands.spending.budget import total_usd
from commands.spending.pricing import TokenPricing
from ledger.identity import Digest, Dimension
from projections.tournament.estimate import Basis, CountedQuery
from projections.tournament.remaining import Unanswered
from projections.tournament.spend import is_free
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery

COUNTED_OF_EACH: Final = 8  # queries of a dimension, at most
PRICED_OF_ALL: Final = 2_000  # queries whose mean cost stands for all, at most

Item = TypeVar("Item")


class Tokens(NamedTuple):
    """The expected tokens of queries, each sent once."""

    n_input: int
    n_output: int


NO_TOKENS: Final = Tokens(0, 0)


class SubmissionOption(NamedTuple):
    """A way to send queries, and its cost; None: the price is unknown."""

    in_batch: bool
    cache: CacheTtl
    is_chosen: bool  # by the settings
    expected_usd: float | None
    worst_usd: float | None  # retries included


@dataclass(frozen=True)
class PlannedCost:
    """The forecast of judging, with what is spent and in flight, and the cap."""

    model: str
    basis: Basis
    tokens: Mapping[Dimension, Tokens]
    ways: tuple[SubmissionOption, ...]
    spent_usd: float
    n_unpriced: int  # replies to this tournament that are not in it, having no price
    cap_usd: float | None
    n_in_flight: int
    in_flight_usd: float | None  # at worst; None: unknown
    n_least_cached: int | None  # tokens of the shortest prefix that the provider caches
    prefixes: Mapping[Dimension, int]  # expected tokens

    @property
    def too_short(self) -> Mapping[Dimension, int]:
        """The prefixes that are too short to be cached."""
        least = self.n_least_cached or 0
        return {dimension: n for dimension, n in self.prefixes.items() if n < least}


def plan_cost(
    state: Tournament,
    queries: Sequence[Unanswered],
    pricing: TokenPricing,
    *,
    cap_usd: float | None,
) -> PlannedCost:
    """Forecast the cost of open queries."""
    groups = _by_dimension(queries)
    in_flight = [batch.planned for batch in state.open_judge_batches]
    return PlannedCost(
        model=pricing.judge.model,
        basis=pricing.tokens.basis,
        tokens={dimension: _tokens(pricing, group) for dimension, group in groups.items()},
        ways=_ways(queries, pricing),
        spent_usd=state.spent_usd,
        n_unpriced=_n_unpriced(state),
        cap_usd=cap_usd,
        n_in_flight=sum(len(planned.queries) for planned in in_flight),
        in_flight_usd=total_usd(planned.worst_usd for planned in in_flight),
        n_least_cached=pricing.prices.min_cacheable(pricing.judge.model),
        prefixes={
            dimension: pricing.tokens.expected(group[0].asked).n_prefix
            for dimension, group in groups.items()
        },
    )


def _n_unpriced(state: Tournament) -> int:
    """Count its replies of judges behind a server that came while their model had no price."""
    served = {judge.judge_id for judge in state.judges.values() if not is_free(judge)}
    return sum(
        reply.judge in served and reply.usage is not None and reply.price is None
        for reply in state.replies
        if reply.query_key in state.attempts  # others on the ledger have budgets of their own
    )


def counted_sample(
    queries: Sequence[Unanswered], counter: TokenCounter
) -> tuple[CountedQuery, ...]:
    """Have the provider count the tokens of a few queries per dimension, evenly spaced."""
    chosen: dict[Digest, JudgeQuery] = {}
    for group in _by_dimension(queries).values():
        sample = evenly_spaced(group, COUNTED_OF_EACH)
        chosen.update({query.asked.query_key: query.asked for query in sample})
    counts = counter(list(chosen.values()))
    return tuple(CountedQuery(chosen[key], n_input) for key, n_input in counts.items())


def evenly_spaced(items: Sequence[Item], n_most: int) -> Sequence[Item]:
    """Return so many items at most, from the first on in equal steps."""
    return items[:: -(-len(items) // n_most) or 1]


def _by_dimension(queries: Sequence[Unanswered]) -> dict[Dimension, list[Unanswered]]:
    """Group requests; one for several dimensions is in the group of each."""
    groups: dict[Dimension, list[Unanswered]] = {}
    for query in queries:
        for each in query.every:
            groups.setdefault(each.subject, []).append(query)
    return groups


def _tokens(pricing: TokenPricing, group: Sequence[Unanswered]) -> Tokens:
    """Return a dimension's share of the tokens of requests."""
    expected = [(pricing.tokens.expected(query.asked), len(query.every)) for query in group]
    return Tokens(
        round(fsum(each.n_input / n for each, n in expected)),
        round(fsum(each.n_output / n for each, n in expected)),
    )


def _ways(queries: Sequence[Unanswered], chosen: TokenPricing) -> tuple[SubmissionOption, ...]:
    """Return the ways to send queries: direct before batches, uncached before cached."""
    if chosen.judge.provider == "endpoint":
        return (way_as_set(queries, chosen),)
    ttl: CacheTtl = "5m" if chosen.cache == "off" else chosen.cache
    caches: tuple[CacheTtl, ...] = ("off", ttl)
    ways = (
        replace(chosen, in_batch=in_batch, cache=cache)
        for in_batch in (False, True)
        for cache in caches
    )
    return tuple(way_as_set(queries, way)._replace(is_chosen=way == chosen) for way in ways)


def way_as_set(queries: Sequence[Unanswered], pricing: TokenPricing) -> SubmissionOption:
    """Return the cost of queries if they are sent as the settings say."""
    asked = [query.asked for query in queries]
    worst = pricing.worst_usd(asked)
    return SubmissionOption(
        pricing.in_batch,
        pricing.cache,
        is_chosen=True,
        expected_usd=pricing.expected_usd(asked),
        worst_usd=None if worst is None else worst * (1 + pricing.retries),
    )
