"""What entrants behind endpoints would cost, and did; nothing unknown is told as free."""

from pathlib import Path

import pytest

from commands.spending.endpoints import Request, endpoint_costs
from commands.spending.price_table import PriceTable, price_table
from ledger.events.registration import Entrant
from projections.tournament.estimate import FRAME_TOKENS
from tests.providers.openai import MODEL, PRICES
from tests.support.builders.events import entrant, key


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    """Give prices of one model that is served."""
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")
    return price_table(tmp_path / "prices.toml")


def hosted(entrant_id: str, weights: str = MODEL) -> Entrant:
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

    assert (cost.entrant_id, cost.model, cost.n_requests) == ("a", MODEL, 2)
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
    assert endpoint_costs([Request(entrant("base", weights=MODEL), "x")], prices) == ()
