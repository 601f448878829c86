"""Price a judge's queries by provider, batches and prompt cache, and forecast what judging costs.

A price is the expected one, and that of the worst case; the forecast has both for each way to send
the queries.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import fsum
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from commands.ports import TokenCounter
from commands.settings.schema import CacheTtl, Settings
from commands.settings.sections import EndpointSection
from commands.settings.servers import is_on_own_network
from commands.spending.budget import total_usd
from commands.spending.endpoints import Request
from commands.spending.price_table import PricedModel, PriceTable, price_table
from ledger.events.money import Price, Usage, cost_usd
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, Dimension, EntrantId
from projections.tournament.estimate import (
    Basis,
    CountedQuery,
    TokenModel,
    n_input_at_most,
    token_model,
)
from projections.tournament.matches import PlannedResponse
from projections.tournament.remaining import Unanswered
from projections.tournament.spend import is_free
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery


class Pricing(Protocol):
    """The prices of a judge."""

    def price_of(self, usage: Usage) -> Price | None:
        """Return the price of a reply; None: unknown, or free."""

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the expected cost of queries; None: the price is unknown."""

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the worst-case cost of queries; None: the price is unknown."""

    def caches(self, query: JudgeQuery) -> bool:
        """Return whether the provider caches a query's system text."""


class _FreeOfCharge:
    """The prices of a judge on this machine, which costs nothing."""

    def price_of(self, _: Usage) -> Price | None:
        """Return None, as for all that is free."""
        return None

    def expected_usd(self, _: Sequence[JudgeQuery]) -> float:
        """Return 0."""
        return 0.0

    worst_usd = expected_usd

    def caches(self, _: JudgeQuery) -> bool:
        """Return False."""
        return False


FREE_OF_CHARGE: Final = _FreeOfCharge()


# Expected cache hits before replies tell their share: nearly all of direct requests; of batches the
# middle of the 30 to 98 % that Anthropic documents (2026).
DIRECT_HITS: Final = 0.95
BATCH_HITS: Final = 0.64


@dataclass(frozen=True)
class TokenPricing:
    """The prices of a judge that is billed by the token.

    How many it takes is estimated from all replies, so only once somebody asks.
    """

    judge: JudgeSettings
    prices: PriceTable
    tokens_of: Callable[[], TokenModel]
    in_batch: bool
    cache: CacheTtl
    retries: int = 0

    @property
    def tokens(self) -> TokenModel:
        """The tokens that queries are expected to take."""
        return self.tokens_of()

    def price_of(self, usage: Usage) -> Price | None:
        """Return the price of a reply; None: unknown."""
        return None if self._model is None else self._model.price(usage, in_batch=self.in_batch)

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the expected cost of queries, retries included."""
        model = self._model
        if model is None:
            return None
        once = sum(self._expected(model, query) for query in queries)
        return once * self.tokens.n_askings(self.retries)

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the worst-case cost of queries, each sent once; None: unknown."""
        model, max_tokens = self._model, self.judge.max_tokens
        if model is None or max_tokens is None:
            return None
        return sum(self._worst(model, query, max_tokens) for query in queries)

    def caches(self, query: JudgeQuery) -> bool:
        """Return whether the provider is likely to cache a query's prefix."""
        if self.cache == "off":
            return False
        n_least = self.prices.min_cacheable(self.judge.model)
        if n_least is None:
            return self.tokens.hit_share(in_batch=self.in_batch) is not None
        return self.tokens.expected(query).n_prefix >= n_least

    @cached_property
    def _model(self) -> PricedModel | None:
        return self.prices.of(self.judge.model)

    def _expected(self, model: PricedModel, query: JudgeQuery) -> float:
        n_input, n_output, n_prefix = self.tokens.expected(query)
        if not self.caches(query):
            return self._cost(model, Usage(n_input=n_input, n_output=n_output))
        hits, n_rest = self._hit_share, n_input - n_prefix
        read = Usage(n_input=n_rest, n_output=n_output, n_cache_read=n_prefix)
        written = self._written(n_prefix, n_input=n_rest, n_output=n_output)
        return hits * self._cost(model, read) + (1 - hits) * self._cost(model, written)

    @property
    def _hit_share(self) -> float:
        seen = self.tokens.hit_share(in_batch=self.in_batch)
        if seen is not None:
            return seen
        return BATCH_HITS if self.in_batch else DIRECT_HITS

    def _worst(self, model: PricedModel, query: JudgeQuery, max_tokens: int) -> float:
        """Return the cost if every byte were a token, at the dearest input price."""
        n_input = n_input_at_most(query, self.judge)
        plain = Usage(n_input=n_input, n_output=max_tokens)
        written = self._written(n_input, n_input=0, n_output=max_tokens)
        if model.row.caches_unasked:
            written = Usage(n_input=0, n_output=max_tokens, n_cache_write_5m=n_input)
        return max(self._cost(model, plain), self._cost(model, written))

    def _written(self, n_written: int, *, n_input: int, n_output: int) -> Usage:
        """Return the usage of a request that writes a prefix to the cache, if there is one."""
        match self.cache:
            case "5m":
                return Usage(n_input=n_input, n_output=n_output, n_cache_write_5m=n_written)
            case "1h":
                return Usage(n_input=n_input, n_output=n_output, n_cache_write_1h=n_written)
            case "off":
                return Usage(n_input=n_input + n_written, n_output=n_output)

    def _cost(self, model: PricedModel, usage: Usage) -> float:
        return cost_usd(usage, model.price(usage, in_batch=self.in_batch))


@dataclass(frozen=True)
class PriceBook:
    """The prices of judges and endpoint entrants, by the settings."""

    own: Path | None  # the user's price table, before the shipped one
    cache: CacheTtl
    retries: int
    hosted: frozenset[EntrantId] = frozenset()  # on servers that may bill what has no price here
    batched: frozenset[EntrantId] = frozenset()  # respond in batches, at another price

    def requests(self, cells: Iterable[PlannedResponse]) -> tuple[Request, ...]:
        """Return the requests for responses, as they are sent by the settings."""
        return tuple(
            Request(cell.entrant, cell.text, cell.entrant.entrant_id in self.batched)
            for cell in cells
        )

    @cached_property
    def table(self) -> PriceTable:
        """The price table.

        Raises:
            ConfigurationError: The user's file is missing or wrong.
        """
        return price_table(self.own)

    def pricing(
        self,
        judge: JudgeSettings,
        state: Tournament,
        *,
        counted: Sequence[CountedQuery] = (),
        scored: Sequence[JudgeQuery] = (),
    ) -> Pricing:
        """Return a judge's prices, by its provider and the settings.

        Args:
            judge: The judge.
            state: The tournament; its recorded replies tell the tokens to expect.
            counted: The provider's token counts of a few queries, if there are any.
            scored: Queries about answers of evaluations; recorded replies to them tell, too.

        Raises:
            ConfigurationError: The user's price table is missing or wrong.
        """
        if is_free(judge):
            return FREE_OF_CHARGE
        return TokenPricing(
            judge,
            self.table,
            cache(partial(token_model, state, judge, counted, scored)),
            in_batch=judge.is_batched,
            cache="off" if judge.company == "endpoint" else self.cache,
            retries=self.retries,
        )


def price_book(settings: Settings, folder: Path) -> PriceBook:
    """Return the price book of the settings; relative paths start from the folder."""
    asked = settings.judge
    own = None if asked.prices is None else folder / asked.prices
    hosted = frozenset(
        EntrantId(section.id)
        for section in settings.entrants
        if isinstance(section, EndpointSection) and not is_on_own_network(section.base_url)
    )
    return PriceBook(own, asked.cache, asked.retries, hosted, settings.batched)


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
