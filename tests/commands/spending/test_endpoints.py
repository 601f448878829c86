"""What entrants behind endpoints would cost, and did; nothing unknown is told as free."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.decisions.commands import RecordResponse
from commands.decisions.recorder import Recorder
from commands.ports import GenerationFailure
from commands.spending.endpoints import (
    AnswerUsage,
    EndpointSpend,
    Request,
    endpoint_costs,
    endpoint_spend,
    spent_at_endpoints,
)
from commands.spending.price_table import PriceTable, price_table
from ledger.events.money import Usage
from ledger.events.registration import Entrant, TournamentOpened
from ledger.events.registry import Event
from ledger.identity import EntrantId, PromptId, StreamId
from ledger.store import Ledger
from projections.tournament.estimate import FRAME_TOKENS
from projections.tournament.matches import planned_responses
from tests.support.builders.commands import open_tournament
from tests.support.builders.events import STREAM, entrant, key, opened, prompt, responses

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
OF_TWO_ANSWERS_USD = 2 * (3 * 2 + 3 * 10) / 1e6  # each of 3 tokens in and 3 out


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    """Give prices of one model that is served."""
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")
    return price_table(tmp_path / "prices.toml")


def hosted(entrant_id: str, weights: str = "org/large") -> Entrant:
    """Return an entrant that a server serves, of 32 new tokens at most."""
    digest = key(weights)  # a server's weights are known by their name
    return entrant(
        entrant_id, loader="endpoint", weights=weights, weights_digest=digest, dtype=None
    )


def having_answered(
    ledger: Ledger, roster: Sequence[Entrant], *, stream: StreamId = STREAM, opening: int = 1
) -> Recorder:
    """Open a tournament of two prompts, and record what each entrant answers: 3 tokens each way."""
    events = opened(prompts=[prompt("p1"), prompt("p2")], entrants=roster, opening=opening)
    return answering(ledger, events, stream)


def answering(ledger: Ledger, events: Sequence[Event], stream: StreamId = STREAM) -> Recorder:
    """Open a tournament, and record every response that nobody has made yet."""
    recorder = Recorder(ledger, stream)
    recorder.record(open_tournament(events))
    made = responses(recorder.state)
    known = recorder.state.responses
    ledger.append(stream, [each for each in made if each.response_key not in known])
    return Recorder(ledger, stream)


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


def test_what_was_spent_follows_from_the_responses_on_record(
    ledger: Ledger, prices: PriceTable
) -> None:
    """A cap counts it, so that a second run does not spend the same again."""
    recorder = having_answered(ledger, [hosted("a"), hosted("b", "other"), entrant("base")])

    assert spent_at_endpoints(recorder.ledger, recorder.state, prices) == pytest.approx(
        OF_TWO_ANSWERS_USD
    )


def test_what_an_entrant_took_that_was_removed_is_not_forgotten(
    ledger: Ledger, prices: PriceTable
) -> None:
    """Whoever exchanges the roster has not got the money back."""
    having_answered(ledger, [hosted("a"), entrant("base")])
    gone = having_answered(ledger, [entrant("base"), entrant("tuned")], opening=2)

    assert [each.entrant_id for each in gone.state.roster] == ["base", "tuned"]
    assert spent_at_endpoints(gone.ledger, gone.state, prices) == pytest.approx(OF_TWO_ANSWERS_USD)


@pytest.mark.parametrize("models", [("other", "org/large"), ("org/large", "other")])
def test_a_label_that_stood_for_another_model_is_charged_for_each_its_own(
    ledger: Ledger, prices: PriceTable, models: tuple[str, str]
) -> None:
    """What a server of one's own answered does not become dear when its label is given on."""
    for opening, model in enumerate(models, start=1):
        recorder = having_answered(ledger, [hosted("a", model)], opening=opening)

    assert len(recorder.state.responses) == 4
    assert spent_at_endpoints(recorder.ledger, recorder.state, prices) == pytest.approx(
        OF_TWO_ANSWERS_USD
    )


def test_an_earlier_seeds_responses_were_paid_too(ledger: Ledger, prices: PriceTable) -> None:
    """Another seed asks everything anew, and gives nothing back."""
    drawn = replace(hosted("a"), temperature=0.7)
    opening, *registrations = opened(prompts=[prompt("p1"), prompt("p2")], entrants=[drawn])
    assert isinstance(opening, TournamentOpened)
    for seed in (0, 1):
        again = replace(opening, generation_seed=seed)
        recorder = answering(ledger, [again, *registrations])

    assert len(recorder.state.responses) == 4
    assert spent_at_endpoints(recorder.ledger, recorder.state, prices) == pytest.approx(
        2 * OF_TWO_ANSWERS_USD
    )


def test_an_answer_that_was_kept_back_was_paid_too(ledger: Ledger, prices: PriceTable) -> None:
    """A server's filter gives no text, and a bill."""
    recorder = Recorder(ledger, STREAM)
    recorder.record(open_tournament(opened(entrants=[hosted("a"), hosted("b")])))
    usages = (Usage(3, 3), None)
    cells_of_both = planned_responses(recorder.state, [PromptId("p1")])
    for cell, usage in zip(cells_of_both, usages, strict=True):
        failure = GenerationFailure(cell.response_key, "refused", "content_filter", usage)
        recorder.record(RecordResponse(cell, failure))

    assert spent_at_endpoints(recorder.ledger, recorder.state, prices) == pytest.approx(
        OF_TWO_ANSWERS_USD / 2
    )


def test_another_tournament_of_the_ledger_has_a_purse_of_its_own(
    ledger: Ledger, prices: PriceTable
) -> None:
    """Its responses are used here, and were paid for there."""
    having_answered(ledger, [hosted("a")], stream=StreamId("theirs"))
    ours = having_answered(ledger, [hosted("a")])

    assert len(ours.state.responses) == 2
    assert spent_at_endpoints(ours.ledger, ours.state, prices) == 0.0


SHIPPED = price_table()  # opus at 4 and 20 dollars for a million tokens in and out
TOOK = Usage(n_input=1_000, n_output=100)
USD = (1_000 * 4 + 100 * 20) / 1e6


def hosted_claude(entrant_id: str, weights: str = "claude-opus-5-5") -> Entrant:
    """Return an entrant that a server serves."""
    return entrant(entrant_id, loader="endpoint", weights=weights, dtype=None)


def test_answers_are_added_up_by_entrant_and_model() -> None:
    """A label may come to stand for another model, of another price."""
    moved = hosted_claude("a", "mine")

    found = endpoint_spend(
        [AnswerUsage(who, TOOK) for who in (hosted_claude("a"), moved, hosted_claude("a"))], SHIPPED
    )

    dear, own = found
    assert dear == EndpointSpend(
        EntrantId("a"), "claude-opus-5-5", 2, 2_000, 200, dear.usd, SHIPPED.sheets[0].title
    )
    assert dear.usd == pytest.approx(2 * USD)
    assert own == EndpointSpend(EntrantId("a"), "mine", 1, 1_000, 100, None, None)


def test_weights_on_this_machine_are_on_no_bill() -> None:
    """Whatever they are called."""
    assert (
        endpoint_spend([AnswerUsage(entrant("base", weights="claude-opus-5-5"), TOOK)], SHIPPED)
        == ()
    )


def test_it_adds_up_to_what_the_cap_counts() -> None:
    """A model without a price adds nothing to what the cap counts."""
    used = [AnswerUsage(hosted_claude(name), TOOK) for name in ("a", "b", "a")] + [
        AnswerUsage(hosted_claude("c", "x"), TOOK)
    ]

    found = endpoint_spend(used, SHIPPED)

    assert sum(each.usd or 0.0 for each in found) == pytest.approx(3 * USD)
    assert [each.entrant_id for each in found] == ["a", "b", "c"]
