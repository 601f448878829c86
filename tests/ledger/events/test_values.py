"""What a reply cost: counted tokens times the price that held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.money import Price, Usage, cost_usd
from tests.support.builders.batches import DEAR
from tests.support.strategies.values import prices

_FEW = st.integers(min_value=0, max_value=10**6)
USAGES = st.builds(
    Usage,
    n_input=_FEW,
    n_output=_FEW,
    n_cache_write_5m=_FEW,
    n_cache_write_1h=_FEW,
    n_cache_read=_FEW,
)


@pytest.mark.parametrize(
    ("kind", "usd"),
    [
        ("n_input", 1.0),
        ("n_output", 10.0),
        ("n_cache_write_5m", 1.25),
        ("n_cache_write_1h", 2.0),
        ("n_cache_read", 0.125),
    ],
)
def test_a_million_tokens_of_each_kind_cost_what_the_table_says(kind: str, usd: float) -> None:
    """Kinds differ eighty-fold here; one taken for another would go unnoticed in the sum."""
    million = replace(Usage(n_input=0, n_output=0), **{kind: 1_000_000})

    assert cost_usd(million, DEAR) == usd


@given(one=USAGES, other=USAGES, price=prices())
def test_two_replies_cost_what_each_costs(one: Usage, other: Usage, price: Price) -> None:
    """Spending is added up reply by reply, in whatever order they came."""
    names = Usage.__struct_fields__
    both = Usage(**{name: getattr(one, name) + getattr(other, name) for name in names})

    total = cost_usd(one, price) + cost_usd(other, price)

    assert cost_usd(both, price) == pytest.approx(total)
