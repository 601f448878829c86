"""Requests to entrants: counted once, at what they cost, and at the worst until that is known."""

from functools import reduce

import pytest
from msgspec.structs import replace

from ledger.events.judging import Fate
from ledger.events.money import Usage
from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import EntrantId
from projections.results.money import EntrantSpendRow
from projections.tournament.requests import (
    NO_REQUESTS,
    EntrantKey,
    EntrantRequests,
    RequestKey,
    endpoint_spend,
    evolve_requests,
)
from tests.support.builders.events import key

BASE = EntrantId("base")
BY_BASE = EntrantKey(BASE, "org/base")


def submitted(number: int = 1, **worst_usd: float | None) -> RequestsSubmitted:
    """Return requests to base, by name, with what each costs at worst."""
    return RequestsSubmitted(
        number=number,
        entrant=BASE,
        model="org/base",
        requests=tuple(key(name) for name in worst_usd),
        worst_usd=tuple(worst_usd.values()),
    )


def charge(name: str, fate: Fate = "answered", usd: float | None = 0.0) -> Charge:
    """Return what became of a request; an answer took 3 tokens to 2."""
    usage = Usage(3, 2) if fate == "answered" else None
    return Charge(request=key(name), fate=fate, usage=usage, usd=usd)


def settled(*charges: Charge, number: int = 1, table: str | None = "a table") -> RequestsSettled:
    """Return the end of requests."""
    return RequestsSettled(
        number=number, entrant=BASE, model="org/base", charges=charges, price_table=table
    )


def after(*steps: RequestsSubmitted | RequestsSettled) -> EntrantRequests:
    """Return the requests after some events."""
    return reduce(evolve_requests, steps, NO_REQUESTS)


def test_a_request_is_under_way_until_it_ends() -> None:
    """Its process may die meanwhile, and nobody else knows of it."""
    requests = after(submitted(first=0.5, second=0.25, third=None))
    ended = evolve_requests(requests, settled(charge("first", usd=0.125)))

    assert requests.at_risk_usd == 0.75
    assert ended.at_risk_usd == 0.25
    assert set(ended.under_way) == {RequestKey(BASE, key("second")), RequestKey(BASE, key("third"))}
    assert (ended.n_submitted, ended.n_settled) == (1, 1)


def test_answers_are_added_up_with_their_tokens() -> None:
    """An answer of unknown price is counted apart: it cost something."""
    requests = after(
        submitted(a=1.0, b=1.0, c=None),
        settled(charge("a", usd=0.5), charge("b", usd=0.25), charge("c", usd=None)),
    )

    bill = requests.bills[BY_BASE]
    assert (bill.n_replies, bill.n_unpriced, bill.tokens) == (3, 1, Usage(9, 6))
    assert bill.usd == requests.usd == 0.75
    assert requests.price_tables[BY_BASE] == "a table"
    assert requests.at_risk_usd == 0.0


@pytest.mark.parametrize("fate", ["refused", "not sent"])
def test_a_request_that_nobody_bills_is_on_no_bill(fate: Fate) -> None:
    """It is over, and may be sent again."""
    requests = after(submitted(a=1.0), settled(charge("a", fate), table=None))

    assert not requests.bills
    assert not requests.price_tables
    assert requests.at_risk_usd == requests.usd == 0.0


def test_a_request_that_was_perhaps_billed_stays_at_risk() -> None:
    """It may be sent again, and both count."""
    requests = after(
        submitted(a=1.0),
        settled(charge("a", "perhaps billed", usd=1.0)),
        submitted(number=2, a=1.0),
        settled(charge("a", usd=0.5), number=2),
    )

    bill = requests.bills[BY_BASE]
    assert (bill.n_replies, bill.n_maybe_billed) == (1, 1)
    assert (requests.usd, requests.at_risk_usd) == (0.5, 1.0)


def test_an_answer_that_two_ledgers_received_is_billed_once() -> None:
    """Until the request is sent again, whose answer is another."""
    once = after(submitted(a=1.0), settled(charge("a", usd=0.5)))
    merged = evolve_requests(once, settled(charge("a", usd=0.5), number=2))
    asked_again = evolve_requests(merged, submitted(number=2, a=1.0))
    again = evolve_requests(asked_again, settled(charge("a", usd=0.25), number=3))

    assert merged.bills == once.bills
    assert again.usd == 0.75


def test_what_is_under_way_is_on_the_bill_as_perhaps_billed() -> None:
    """A process that died leaves it so."""
    requests = after(submitted(a=1.0, b=None))

    bill = requests.bills[BY_BASE]
    assert (bill.n_replies, bill.n_maybe_billed, bill.maybe_usd) == (0, 2, 1.0)


def test_what_was_spent_is_told_by_entrant_and_model() -> None:
    """A label may come to stand for another model, of another price; an unknown one is told."""
    first, second, mine = (
        replace(settled(*charges), entrant=EntrantId(who), model=model, price_table=table)
        for who, model, table, *charges in (
            ("b", "large", "a table", charge("1", usd=0.5), charge("2", usd=0.25)),
            ("a", "large", "a table", charge("3", usd=0.125)),
            ("a", "mine", None, charge("4", usd=None)),
        )
    )

    assert endpoint_spend(after(first, second, mine)) == (
        EntrantSpendRow(EntrantId("a"), "large", 1, 3, 2, 0.125, "a table", 0, 0.0),
        EntrantSpendRow(EntrantId("a"), "mine", 1, 3, 2, None, None, 0, 0.0),
        EntrantSpendRow(EntrantId("b"), "large", 2, 6, 4, 0.75, "a table", 0, 0.0),
    )


def test_requests_without_an_answer_are_told_at_their_worst() -> None:
    """Those under way, and those that were perhaps billed."""
    lost = settled(charge("lost", "perhaps billed", usd=0.5))

    (spend,) = endpoint_spend(after(submitted(lost=0.5, awaited=0.25), lost))

    assert (spend.n_answers, spend.usd) == (0, 0.0)
    assert (spend.n_maybe_billed, spend.maybe_usd) == (2, 0.75)


def test_a_request_of_unknown_price_may_cost_anything() -> None:
    """A sum that leaves it out would look like a bound; a price may be named later."""
    lost = settled(charge("lost", "perhaps billed", usd=None), table=None)
    priced = settled(charge("answered", usd=0.5), number=2)

    (unpriced,) = endpoint_spend(after(submitted(lost=None), lost))
    (mixed,) = endpoint_spend(after(submitted(lost=None), lost, priced))

    assert (unpriced.n_maybe_billed, unpriced.usd, unpriced.maybe_usd) == (1, None, None)
    assert (mixed.n_answers, mixed.usd, mixed.maybe_usd) == (1, 0.5, None)
    bill = after(submitted(lost=None), lost).bills[BY_BASE].fields
    assert (bill["maybe_usd"], bill["usd"], bill["failed_usd"]) == (None, None, None)
