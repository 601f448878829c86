"""Requests to entrants on the ledger: before they are sent, and with what they cost."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.decisions.recorder import Recorder
from commands.ports import GenerationTask, Tell
from commands.spending.budget import BudgetReached
from commands.spending.endpoints import LedgerBilling, close_abandoned, request_worst_usd
from commands.spending.price_table import PriceTable, price_table
from ledger.events.judging import Fate
from ledger.events.money import Usage
from ledger.events.registration import Entrant
from ledger.events.requests import Charge, RequestsSubmitted
from ledger.store import Ledger
from projections.tournament.requests import endpoint_spend
from tests.providers.openai import MODEL, PRICES
from tests.support.builders.commands import open_tournament
from tests.support.builders.events import STREAM, entrant, key, opened, prompt

SERVED = entrant("base", loader="endpoint", weights=MODEL, dtype=None)
UNPRICED = entrant("tuned", loader="endpoint", weights="org/mine", dtype=None)
TOOK = Usage(n_input=1_000, n_output=100)
USD = (1_000 * 2 + 100 * 10) / 1e6


@pytest.fixture
def recorder(recorder: Recorder) -> Recorder:
    """Give a tournament of two entrants behind endpoints."""
    recorder.record(open_tournament(opened(entrants=[SERVED, UNPRICED])))
    return recorder


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    """Give prices of one of the two models."""
    return table(tmp_path, PRICES)


def table(folder: Path, text: str) -> PriceTable:
    """Return a price table of one's own."""
    (folder / "prices.toml").write_text(text, encoding="utf-8")
    return price_table(folder / "prices.toml")


def billing(
    recorder: Recorder, prices: PriceTable, cap_usd: float | None = None, tell: Tell = print
) -> LedgerBilling:
    """Return the billing of a recorder, with a cap or without."""
    return LedgerBilling(recorder, prices, cap_usd, tell)


def tasks(n: int, who: Entrant = SERVED) -> list[GenerationTask]:
    """Return requests, all of the same length."""
    return [GenerationTask(key(f"request {each}"), who, "Why?", seed=each) for each in range(n)]


def ended(task: GenerationTask, fate: Fate = "answered") -> Charge:
    """Return what became of a request."""
    usage = TOOK if fate == "answered" else None
    return Charge(request=task.response_key, fate=fate, usage=usage)


def worst_usd(prices: PriceTable) -> float:
    """Return what one request costs at worst."""
    usd = request_worst_usd(SERVED, "Why?", prices)
    assert usd is not None
    return usd


def test_what_is_sent_beside_a_prompt_is_in_its_worst_cost(prices: PriceTable) -> None:
    """Tools of 20 kB in each request are tokens that a server bills."""
    body = json.dumps({"tools": "x" * 20_000})
    chosen = replace(SERVED.chosen, extra_body=body, template_arguments='{"thinking": true}')

    usd = request_worst_usd(replace(SERVED, options=chosen), "Why?", prices)

    assert usd is not None
    assert usd > 5 * worst_usd(prices)


def test_requests_are_on_the_ledger_before_they_are_sent(
    recorder: Recorder, prices: PriceTable
) -> None:
    """A process that is killed a moment later cannot tell of them."""
    asked = tasks(3)

    assert billing(recorder, prices).submit(asked) == asked

    (submitted,) = (
        each.event for each in recorder.ledger.read() if isinstance(each.event, RequestsSubmitted)
    )
    assert submitted.requests == tuple(task.response_key for task in asked)
    assert submitted.worst_usd == (worst_usd(prices),) * 3
    assert recorder.state.requests.at_risk_usd == pytest.approx(3 * worst_usd(prices))


def test_an_answer_costs_what_its_price_was_then(
    recorder: Recorder, prices: PriceTable, tmp_path: Path
) -> None:
    """A price that changes later changes nothing of it."""
    first, second = tasks(2)
    before = billing(recorder, prices)
    before.submit([first, second])
    before.settle(SERVED, [ended(first)])

    doubled = table(tmp_path, PRICES.replace("2.0", "4.0").replace("10.0", "20.0"))
    billing(recorder, doubled).settle(SERVED, [ended(second)])
    recorder.record()

    (spend,) = endpoint_spend(recorder.state.requests)
    assert spend.usd == pytest.approx(3 * USD)
    assert (spend.n_answers, spend.n_input, spend.n_output) == (2, 2_000, 200)
    assert recorder.state.requests.at_risk_usd == 0.0


def test_a_model_without_a_price_costs_nobody_knows_what(
    recorder: Recorder, prices: PriceTable
) -> None:
    """It is asked even under a cap, and is never told as free."""
    (task,) = tasks(1, UNPRICED)
    account = billing(recorder, prices, cap_usd=1e-9)

    assert account.submit([task]) == [task]
    account.settle(UNPRICED, [ended(task)])
    recorder.record()

    (spend,) = endpoint_spend(recorder.state.requests)
    assert (spend.n_answers, spend.usd, spend.price_table) == (1, None, None)


def test_the_cap_lets_pass_what_it_covers_at_worst(recorder: Recorder, prices: PriceTable) -> None:
    """More may pass when answers cost less than their worst."""
    account, asked = billing(recorder, prices, cap_usd=2.5 * worst_usd(prices)), tasks(4)

    with account.sending():
        assert account.submit(asked) == asked[:2]
        assert account.submit(asked[2:]) == ()
        account.settle(SERVED, [ended(each, "refused") for each in asked[:2]])
        assert account.submit(asked[2:]) == asked[2:]


def test_a_cap_that_is_reached_is_told_at_the_end(recorder: Recorder, prices: PriceTable) -> None:
    """What is under way is recorded first."""
    account, (first, second) = billing(recorder, prices, cap_usd=1.5 * worst_usd(prices)), tasks(2)

    def send() -> None:
        with account.sending():
            account.submit([first])
            account.submit([second])
            account.settle(SERVED, [ended(first)])

    with pytest.raises(BudgetReached, match="the next request may cost"):
        send()

    assert recorder.state.requests.usd == pytest.approx(USD)


def test_a_request_that_was_perhaps_billed_counts_at_its_worst(
    recorder: Recorder, prices: PriceTable
) -> None:
    """It does so for ever: nobody will know."""
    (task,) = tasks(1)
    account = billing(recorder, prices, cap_usd=1.5 * worst_usd(prices))
    account.submit([task])
    account.settle(SERVED, [ended(task, "perhaps billed")])

    assert account.submit([task]) == ()
    (spend,) = endpoint_spend(recorder.state.requests)
    assert spend.n_maybe_billed == 1
    assert spend.maybe_usd == pytest.approx(worst_usd(prices))


def test_what_a_dead_process_left_is_perhaps_billed(recorder: Recorder, prices: PriceTable) -> None:
    """It is closed once, and counts as it did before."""
    here, there = tasks(1), tasks(2, UNPRICED)
    billing(recorder, prices).submit(here)
    billing(recorder, prices).submit(there)
    before = endpoint_spend(recorder.state.requests)

    close_abandoned(recorder)
    close_abandoned(recorder)

    requests = recorder.state.requests
    assert not requests.under_way
    assert endpoint_spend(requests) == before
    assert [each.n_maybe_billed for each in before] == [1, 2]
    assert requests.n_settled == 2


def test_others_may_append_meanwhile(
    recorder: Recorder, prices: PriceTable, ledger: Ledger
) -> None:
    """A merge does, and so does an evaluation, sample by sample."""
    account, (task,) = billing(recorder, prices), tasks(1)
    *_, late = opened(prompts=[prompt("late")])
    ledger.append(STREAM, [late])

    assert account.submit([task]) == [task]
    ledger.append(STREAM, opened(prompts=[prompt("later")])[1:2])
    account.settle(SERVED, [ended(task)])
    recorder.record()

    assert recorder.state.requests.n_settled == 1


def test_ctrl_c_ends_the_block_when_it_is_over(
    recorder: Recorder, prices: PriceTable, ctrl_c: Callable[[], None]
) -> None:
    """What is under way is recorded first."""
    account, (task,) = billing(recorder, prices, tell=lambda _: None), tasks(1)

    def send() -> None:
        with account.sending() as stops:
            account.submit([task])
            ctrl_c()
            assert stops.is_set()
            account.settle(SERVED, [ended(task)])

    with pytest.raises(KeyboardInterrupt):
        send()

    assert recorder.state.requests.usd == pytest.approx(USD)
