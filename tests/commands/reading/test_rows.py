"""What looks spared, in comparisons and dollars."""

import datetime as dt

import pytest

from commands.reading.rows import NOTHING_SPARED, Spared, spared_by_looks
from ledger.identity import Dimension, JudgeId
from projections.tournament.designs import planned_orders
from projections.tournament.requests import Bill
from projections.tournament.spend import SpendKey
from projections.tournament.waves import open_wave
from tests.support.builders.events import judge, known
from tests.support.builders.waves import bank, look, opening

JUDGES = [judge(), judge("second", model="other")]


def spend(of_first: Bill) -> dict[SpendKey, Bill]:
    """Return what two judges spent, and the first on an evaluation, too."""
    bills = {
        ("reference", "factuality"): of_first,
        ("reference", "recall"): Bill(n_replies=10, usd=70.0),
        ("second", "factuality"): Bill(n_replies=10, usd=50.0),
    }
    day = dt.date(2026, 10, 8)
    return {SpendKey(JudgeId(a), Dimension(b), day): bill for (a, b), bill in bills.items()}


@pytest.mark.parametrize("orders", ["both", "counterbalanced"])
def test_each_order_of_a_spared_comparison_is_worth_a_reply_of_its_judge(orders: str) -> None:
    """Nine of ten have one order; what others asked, or cost, was not spared."""
    events = opening(bank(80), judges=JUDGES, design={"orders": orders})
    state = known(*events, look(known(*events), decided=[("zoe", "amy")]))
    seen = {*open_wave(known(*events))}
    later = [each.prompt_id for each in state.bank if each.prompt_id not in seen]
    asked = planned_orders(state)
    zoe, amy = (each.entrant_id for each in state.roster[:2])
    n_queries = sum(len(asked(prompt, zoe, amy)) for prompt in later)

    found = spared_by_looks(state, spend(Bill(n_replies=8, usd=4.0)))

    assert found == Spared(60, n_queries * 0.5)
    assert (n_queries == 120) == (orders == "both")


def test_without_a_price_dollars_are_not_known() -> None:
    """And without looks there is nothing to tell."""
    events = opening(bank(80), judges=JUDGES)
    state = known(*events, look(known(*events), decided=[("zoe", "amy")]))

    assert spared_by_looks(state, spend(Bill(n_replies=8, n_unpriced=1))) == Spared(60, None)
    assert spared_by_looks(state, spend(Bill())) == Spared(60, None)
    assert spared_by_looks(known(*events), spend(Bill(n_replies=8))) == NOTHING_SPARED
