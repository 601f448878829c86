"""What entrants behind endpoints took: each model for itself, and nothing unknown is free."""

import pytest

from commands.spending.endpoints import AnswerUsage, EndpointSpend, endpoint_spend, spent_usd
from commands.spending.prices import price_table
from ledger.events.registration import Entrant
from ledger.events.values import Usage
from ledger.identity import EntrantId
from tests.builders import entrant

SHIPPED = price_table()  # opus at 4 and 20 dollars for a million tokens in and out
TOOK = Usage(n_input=1_000, n_output=100)
USD = (1_000 * 4 + 100 * 20) / 1e6


def hosted(entrant_id: str, weights: str = "claude-opus-5-5") -> Entrant:
    """Return an entrant that a server serves."""
    return entrant(entrant_id, loader="endpoint", weights=weights, dtype=None)


def test_answers_are_added_up_by_entrant_and_model() -> None:
    """A label may come to stand for another model, of another price."""
    moved = hosted("a", "mine")

    found = endpoint_spend(
        [AnswerUsage(who, TOOK) for who in (hosted("a"), moved, hosted("a"))], SHIPPED
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
    """The table and the cap must never disagree."""
    used = [AnswerUsage(hosted(name), TOOK) for name in ("a", "b", "a")] + [
        AnswerUsage(hosted("c", "x"), TOOK)
    ]

    found = endpoint_spend(used, SHIPPED)

    assert sum(each.usd or 0.0 for each in found) == pytest.approx(spent_usd(used, SHIPPED))
    assert [each.entrant_id for each in found] == ["a", "b", "c"]
