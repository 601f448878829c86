"""Prices, replies that cost something, and what a tournament would cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from commands.settings.inputs import read_instructions
from commands.settings.schema import CacheTtl
from commands.spending.price_table import price_table
from commands.spending.pricing import PlannedCost, Pricing, TokenPricing, plan_cost
from ledger.events.judging import (
    FailureReason,
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    VerdictReceived,
)
from ledger.events.money import Price, Usage
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import Digest, Dimension, EntrantId, JudgeId, digest_of
from projections.tournament.estimate import token_model
from projections.tournament.matches import Match
from projections.tournament.remaining import OpenQuery, open_queries
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.batches import DEAR
from tests.support.builders.events import judge, opened, prompt, verdict
from tests.support.builders.worlds import RUBRICS, answered, everything, failure
from tests.support.specification import after


@dataclass(frozen=True)
class FlatRate(Pricing):
    """Prices every query alike; None: at an unknown price."""

    usd: float | None

    def price_of(self, usage: Usage) -> Price | None:
        """Return a price for what was used."""
        return DEAR if usage.n_output else None

    def caches(self, query: JudgeQuery) -> bool:
        """Keep what has a system text."""
        return bool(query.system)

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Expect the worst."""
        return self.worst_usd(queries)

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the flat rate of each."""
        return None if self.usd is None else self.usd * len(queries)


@dataclass(frozen=True)
class MeanwhileMerged(FlatRate):
    """Prices every query alike; while that is looked up, something is merged, once."""

    merge: Callable[[], object]

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float | None:
        """Return the flat rate of each, after the merge."""
        self.merge()  # told again, the same facts are known
        return super().worst_usd(queries)


OPUS = Price(
    input=4.0,
    output=20.0,
    cache_write_5m=5.0,
    cache_write_1h=8.0,
    cache_read=0.2,
    table="a table of 2026-10-07",
)


def paid(
    query_key: Digest, usage: Usage, price: Price | None = OPUS, *, by: str = "reference"
) -> VerdictReceived:
    """Return a verdict that took tokens."""
    return replace(verdict(query_key, by=by), usage=usage, price=price)


def paid_in_vain(
    question: JudgeQuery,
    usage: Usage,
    price: Price | None = OPUS,
    *,
    reason: FailureReason = "unreadable",
    attempt: int = 1,
) -> JudgeQueryFailed:
    """Return a reply that took tokens and held no verdict."""
    return replace(failure(question, reason, attempt=attempt), usage=usage, price=price)


def put(
    match: Match, question: PairQuery, *, by: str = "reference", attempt: int = 1
) -> JudgeQuerySubmitted:
    """Return the event that puts a question to a judge."""
    pairing = match.pairing
    return JudgeQuerySubmitted(
        query_key=question.query_key,
        judge=JudgeId(by),
        dimension=pairing.rubric.dimension,
        prompt_id=pairing.prompt.prompt_id,
        entrant_a=pairing.a.entrant.entrant_id,
        entrant_b=pairing.b.entrant.entrant_id,
        order=question.order,
        rubric_digest=pairing.rubric.digest,
        response_a=pairing.a.response_key,
        response_b=pairing.b.response_key,
        attempt=attempt,
    )


USED = Usage(n_input=100, n_output=200, n_cache_read=900)


OPUS_JUDGE = judge(
    "opus",
    provider="anthropic-batch",
    model="claude-opus-5-5",
    parameters=(("max_tokens", 4_096.0),),
)
FACTUALITY = Dimension("factuality")


def world(by: JudgeSettings = OPUS_JUDGE, n_prompts: int = 3) -> tuple[Event, ...]:
    """Return a tournament on two dimensions, answered."""
    prompts = [prompt(f"p{n}") for n in range(n_prompts)]
    told = read_instructions(None)  # long enough to be cached
    return answered(opened(prompts=prompts, rubrics=RUBRICS, judges=[by], told=told))


def owed(state: Tournament) -> tuple[OpenQuery, ...]:
    """Return what is open."""
    return open_queries(state, everything(state), state.panel[0], retries=1)


def cost_of(
    *events: Event,
    by: JudgeSettings = OPUS_JUDGE,
    cache: CacheTtl = "5m",
    cap_usd: float | None = None,
) -> PlannedCost:
    """Return what is left to ask would cost."""
    state = after(*events)
    pricing = TokenPricing(
        by,
        price_table(),
        partial(token_model, state, by),
        in_batch=by.provider == "anthropic-batch",
        cache=cache,
        retries=1,
    )
    return plan_cost(state, owed(state), pricing, cap_usd=cap_usd)


def requests_of(who: str, usd: float) -> tuple[RequestsSubmitted, RequestsSettled]:
    """Return a request to an entrant, and its end at a price."""
    name, asked = EntrantId(who), digest_of([who, usd])
    charge = Charge(request=asked, fate="answered", usage=Usage(3, 2), usd=usd)
    return (
        RequestsSubmitted(number=1, entrant=name, model="m", requests=(asked,), worst_usd=(1.0,)),
        RequestsSettled(number=1, entrant=name, model="m", charges=(charge,), price_table=None),
    )
