"""What entrants behind endpoints would cost, and did; nothing unknown is told as free."""

from functools import reduce
from pathlib import Path

import pytest

from commands.spending.endpoints import EndpointSpend, Request, endpoint_costs, endpoint_spend
from commands.spending.price_table import PriceTable, price_table
from ledger.events.money import Usage
from ledger.events.registration import Entrant
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import EntrantId
from projections.tournament.estimate import FRAME_TOKENS
from projections.tournament.requests import NO_REQUESTS, evolve_requests
from tests.support.builders.events import entrant, key

PRICES = """\
date = 2026-04-27
batch_factor = 0.5
cache_write_5m_factor = 1.25
cache_write_1h_factor = 2.0

[[models]]
id = "org/large"
input = 2.0
output = 10.0
"""


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    """Give prices of one model that is served."""
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")
    return price_table(tmp_path / "prices.toml")


TABLE = "prices.toml of 2026-04-27"


def hosted(entrant_id: str, weights: str = "org/large") -> Entrant:
    """Return an entrant that a server serves, of 32 new tokens at most."""
    digest = key(weights)  # a server's weights are known by their name
    return entrant(
        entrant_id, loader="endpoint", weights=weights, weights_digest=digest, dtype=None
    )


def test_requests_are_priced_by_the_name_of_the_weights(prices: PriceTable) -> None:
    """Answers count in full, and at worst every byte of a prompt is a token."""
    (cost,) = endpoint_costs(
        [Request(hosted("a"), "x" * 30), Request(hosted("a"), "x" * 60)], prices
    )

    assert (cost.entrant_id, cost.model, cost.n_requests) == ("a", "org/large", 2)
    assert (cost.n_input, cost.n_output) == (30, 64)
    assert cost.expected_usd == pytest.approx((30 * 2 + 64 * 10) / 1e6)
    assert cost.worst_usd == pytest.approx(((90 + 2 * FRAME_TOKENS) * 2 + 64 * 10) / 1e6)


def test_a_price_that_nobody_knows_is_not_nothing(prices: PriceTable) -> None:
    """Entrants are told apart, as each has a server of its own."""
    costs = endpoint_costs([Request(hosted("b", "other"), "x"), Request(hosted("a"), "x")], prices)

    assert [(each.entrant_id, each.expected_usd is None) for each in costs] == [
        ("b", True),
        ("a", False),
    ]


def test_weights_on_this_machine_cost_nothing(prices: PriceTable) -> None:
    """Whatever they are called."""
    assert endpoint_costs([Request(entrant("base", weights="org/large"), "x")], prices) == ()


def test_what_was_spent_is_told_by_entrant_and_model(prices: PriceTable) -> None:
    """A label may come to stand for another model, of another price; an unknown one is told."""
    steps: list[RequestsSubmitted | RequestsSettled] = [
        settled(1, "b", "org/large", answered_for(0.5), answered_for(0.25)),
        settled(2, "a", "mine", answered_for(None), table=None),
        settled(3, "a", "org/large", answered_for(0.125)),
    ]
    requests = reduce(evolve_requests, steps, NO_REQUESTS)

    mine, first, second = endpoint_spend(requests)

    assert prices.sheets[0].title == TABLE
    assert mine == EndpointSpend(EntrantId("a"), "mine", 1, 3, 2, None, None, 0, 0.0)
    assert first == EndpointSpend(EntrantId("a"), "org/large", 1, 3, 2, 0.125, TABLE, 0, 0.0)
    assert second == EndpointSpend(EntrantId("b"), "org/large", 2, 6, 4, 0.75, TABLE, 0, 0.0)


def test_requests_without_an_answer_are_told_at_their_worst() -> None:
    """Those under way, and those that were perhaps billed."""
    lost = Charge(request=key("lost"), fate="perhaps billed", usd=0.5)
    steps: list[RequestsSubmitted | RequestsSettled] = [
        submitted(1, "a", lost=0.5, awaited=0.25),
        settled(1, "a", "org/large", lost),
    ]
    requests = reduce(evolve_requests, steps, NO_REQUESTS)

    (spend,) = endpoint_spend(requests)

    assert (spend.n_answers, spend.usd) == (0, 0.0)
    assert (spend.n_maybe_billed, spend.maybe_usd) == (2, 0.75)


def answered_for(usd: float | None) -> Charge:
    """Return what became of a request that was answered, in 2 tokens to 3."""
    return Charge(request=key("request"), fate="answered", usage=Usage(3, 2), usd=usd)


def settled(
    number: int,
    who: str,
    model: str,
    *charges: Charge,
    table: str | None = TABLE,
) -> RequestsSettled:
    """Return the end of requests to an entrant."""
    return RequestsSettled(
        number=number, entrant=EntrantId(who), model=model, charges=charges, price_table=table
    )


def submitted(number: int, who: str, **worst_usd: float) -> RequestsSubmitted:
    """Return requests to an entrant, by name, with what each costs at worst."""
    return RequestsSubmitted(
        number=number,
        entrant=EntrantId(who),
        model="org/large",
        requests=tuple(key(name) for name in worst_usd),
        worst_usd=tuple(worst_usd.values()),
    )
