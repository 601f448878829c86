"""The cap on spending: nothing is sent that could go beyond it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.errors import Refused
from commands.spending.budget import Budget, BudgetReached, PriceUnknown, require_price
from commands.spending.pricing import FREE_OF_CHARGE
from ledger.events.values import Usage
from projections.tournament.progress import AskingRules, OpenQuery, open_queries
from tests.builders import opened, prompt, responses
from tests.commands.builders import JUDGE
from tests.commands.flat_rate import FlatRate
from tests.specification import after

BANK = [prompt(f"p{n}") for n in range(4)]
OPENED = opened(prompts=BANK)
QUERIES = open_queries(
    after(*OPENED, *responses(after(*OPENED))),
    [each.prompt_id for each in BANK],
    JUDGE,
    AskingRules(retries=0),
)


def affordable(
    cap_usd: float, usd: float | None = 1.0, *, spent: float = 0.0, in_flight: float = 0.0
) -> Sequence[OpenQuery]:
    """Return what may be sent of eight queries."""
    budget = Budget(cap_usd, FlatRate(usd))
    return budget.affordable(QUERIES, spent_usd=spent, uncertain_usd=in_flight)


def test_the_first_queries_that_fit_are_asked() -> None:
    """A portion that is paid for is better than none."""
    assert affordable(3.5) == QUERIES[:3]
    assert affordable(8.0) == QUERIES


def test_what_is_spent_and_what_is_in_flight_is_not_there_any_more() -> None:
    """A cap is of the tournament, not of the run; a batch on its way is as good as paid."""
    assert affordable(8.0, spent=4.0, in_flight=2.0) == QUERIES[:2]


def test_a_cap_that_is_reached_stops_before_the_next_query() -> None:
    """The message says how much there was, and how to go on."""
    said = (
        r"^the cap is \$3\.00: \$2\.5000 is spent, in flight or perhaps billed, and the next query"
        r" may cost \$1\.0000; raise --max-usd or \[judge\] max_usd to go on$"
    )

    with pytest.raises(BudgetReached, match=said) as caught:
        affordable(3.0, spent=2.0, in_flight=0.5)

    assert (caught.value.cap_usd, caught.value.bound_usd) == (3.0, 2.5)
    assert caught.value.exit_code == 5


def test_a_cap_on_an_unknown_price_refuses() -> None:
    """Nothing is priced at nothing for want of a price."""
    with pytest.raises(Refused, match="this judge has no price; add one with"):
        affordable(100.0, usd=None)


def test_whether_a_price_is_known_needs_no_query() -> None:
    """A run finds it out while nothing is there yet to be judged."""
    require_price(FlatRate(1.0))
    require_price(FREE_OF_CHARGE)
    with pytest.raises(PriceUnknown):
        require_price(FlatRate(None))


def test_a_judge_on_this_machine_is_never_refused() -> None:
    """It costs nothing, so any cap holds."""
    budget = Budget(0.01, FREE_OF_CHARGE)

    assert budget.affordable(QUERIES, spent_usd=0.01) == QUERIES
    assert FREE_OF_CHARGE.expected_usd([each.asked for each in QUERIES]) == 0.0
    assert FREE_OF_CHARGE.price_of(Usage(n_input=1, n_output=1)) is None


@given(
    cap=st.floats(min_value=0.01, max_value=20),
    usd=st.floats(min_value=0.01, max_value=5),
    spent=st.floats(min_value=0, max_value=20),
)
def test_what_is_affordable_never_exceeds_the_cap(cap: float, usd: float, spent: float) -> None:
    """Hard means hard; and as much as fits is asked."""
    try:
        n = len(affordable(cap, usd, spent=spent))
    except BudgetReached:
        n = 0

    assert n == 0 or spent + n * usd <= cap + 1e-9
    assert n == len(QUERIES) or spent + (n + 1) * usd > cap - 1e-9
