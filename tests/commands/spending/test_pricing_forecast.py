"""What judging would cost: each way of asking beside the others, and nothing told as free."""

from collections.abc import Mapping, Sequence
from functools import partial

import pytest
from msgspec.structs import replace

from commands.settings.schema import CacheTtl
from commands.spending.price_table import price_table
from commands.spending.pricing import COUNTED_OF_EACH, TokenPricing, counted_sample
from ledger.events.money import Usage
from ledger.identity import Digest
from projections.tournament.estimate import token_model
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import planned_batch
from tests.support.builders.money import (
    FACTUALITY,
    OPUS_JUDGE,
    cost_of,
    owed,
    paid,
    world,
)
from tests.support.builders.worlds import matches_of
from tests.support.specification import after


class Counter:
    """Counts a token for each character, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[JudgeQuery] = []

    def __call__(self, queries: Sequence[JudgeQuery]) -> Mapping[Digest, int]:
        """Count."""
        self.asked += queries
        return {query.query_key: len(query.system + query.user) for query in queries}


@pytest.mark.parametrize(
    ("cache", "ways", "chosen"),
    [
        ("5m", ["off", "5m", "off", "5m"], 3),
        ("1h", ["off", "1h", "off", "1h"], 3),
        ("off", ["off", "5m", "off", "5m"], 2),
    ],
)
def test_every_way_of_asking_stands_beside_the_chosen_one(
    cache: CacheTtl, ways: list[str], chosen: int
) -> None:
    """Whether a batch or a cache pays is seen before anything is paid."""
    cost = cost_of(*world(), cache=cache)

    assert [way.cache for way in cost.ways] == ways
    assert [way.in_batch for way in cost.ways] == [False, False, True, True]
    assert [n for n, way in enumerate(cost.ways) if way.is_chosen] == [chosen]


def test_a_batch_is_expected_at_half_the_price() -> None:
    """The same tokens, half of every column."""
    direct, _, batch, _ = cost_of(*world()).ways

    assert direct.expected_usd
    assert batch.expected_usd == pytest.approx(direct.expected_usd / 2)


def test_the_worst_of_a_plan_counts_that_all_is_asked_again() -> None:
    """A cap above it is never reached."""
    state = after(*world())
    cost = cost_of(*world(), cache="off")
    pricing = TokenPricing(
        OPUS_JUDGE,
        price_table(),
        partial(token_model, state, OPUS_JUDGE),
        in_batch=True,
        cache="off",
        retries=1,
    )
    once = pricing.worst_usd([query.asked for query in owed(state)])

    assert once is not None
    assert cost.ways[2].worst_usd == 2 * once


def test_tokens_are_told_by_dimension() -> None:
    """Only what is owed counts, and its sum is what the dimension takes."""
    opening = world()
    usage = Usage(n_input=1_000, n_output=100)
    matches = matches_of(after(*opening))
    factual = [each for each in matches if each.pairing.rubric.dimension == FACTUALITY]
    replies = [paid(factual[0].forward.query_key, usage, by="opus")]

    cost = cost_of(*opening, *replies)

    assert cost.basis == "replies"
    assert cost.tokens[FACTUALITY].n_output == 5 * 100  # three pairs, two orders, one is known
    assert cost.tokens[FACTUALITY].n_input == pytest.approx(5_000, rel=0.05)


def test_what_is_spent_and_in_flight_is_told() -> None:
    """Both count against a cap."""
    opening = world()
    first, second, *_ = (each.forward.query_key for each in matches_of(after(*opening)))
    usage = Usage(n_input=1_000, n_output=100)
    batch = replace(planned_batch(second, by=OPUS_JUDGE), worst_usd=0.25)

    cost = cost_of(*opening, paid(first, usage, by="opus"), batch, cap_usd=9.0)

    assert cost.spent_usd == pytest.approx(1_000 * 4e-6 + 100 * 20e-6)
    assert (cost.n_in_flight, cost.in_flight_usd, cost.cap_usd) == (1, 0.25, 9.0)


def test_a_batch_in_flight_at_an_unknown_price_is_not_for_nothing() -> None:
    """The sum of what is known would be too little."""
    opening = world()
    (first, *_) = (each.forward.query_key for each in matches_of(after(*opening)))

    assert cost_of(*opening, planned_batch(first, by=OPUS_JUDGE)).in_flight_usd is None


def test_a_prefix_below_the_models_least_is_named() -> None:
    """Caching does nothing there, and no provider says so."""
    by = replace(OPUS_JUDGE, model="claude-haiku-4-5")  # from 4,096 on
    long_enough, too_short = cost_of(*world()), cost_of(*world(by), by=by)

    assert not long_enough.too_short
    assert set(too_short.too_short) == {"factuality", "utility"}


def test_a_few_prompts_of_each_dimension_are_counted() -> None:
    """Counting costs time, and a few out of all tell the proportion."""
    state, counter = after(*world(n_prompts=30)), Counter()

    counted = counted_sample(owed(state), counter)

    assert len({each.query.query_key for each in counted}) == len(counted)
    assert COUNTED_OF_EACH <= len(counted) <= 2 * COUNTED_OF_EACH
    assert len({each.query.system for each in counted}) == 2
    assert all(each.n_input == len(each.query.system + each.query.user) for each in counted)


def test_where_nothing_is_owed_nothing_is_counted() -> None:
    """A plan of nothing is free in every way."""
    assert counted_sample([], Counter()) == ()
