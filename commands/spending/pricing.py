"""Price a judge's queries: expected and worst case, by provider, batches and prompt cache."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Final, Protocol

from commands.settings.schema import CacheTtl, Settings
from commands.settings.sections import EndpointSection
from commands.settings.servers import is_on_own_network
from commands.spending.endpoints import Request
from commands.spending.price_table import PricedModel, PriceTable, price_table
from ledger.events.money import Price, Usage, cost_usd
from ledger.events.registration import JudgeSettings
from ledger.identity import EntrantId
from projections.tournament.estimate import CountedQuery, TokenModel, n_input_at_most, token_model
from projections.tournament.matches import PlannedResponse
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
