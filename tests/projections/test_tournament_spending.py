"""What a tournament spent, and which replies it paid for in vain."""

from typing import get_args

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.judging import FailureReason, JudgeQueryFailed, VerdictReceived
from ledger.events.registry import Event
from ledger.events.values import cost_usd
from ledger.identity import StreamId
from projections.fold import fold
from projections.tournament.state import tournament_of
from tests.batches import DEAR, USED
from tests.builders import STREAM, key, known, recorded, verdict
from tests.projections.worlds import failure_of
from tests.strategies import histories as any_histories

KEY = key("query")
PAID = replace(verdict(KEY), usage=USED, price=DEAR)
WASTED = replace(failure_of(KEY), usage=USED, price=DEAR)


def test_verdicts_and_useless_replies_are_spent_on_alike() -> None:
    """A refusal is billed as a verdict is; a cap that forgot it would be exceeded."""
    tournament = known(WASTED, PAID)

    assert tournament.spent_usd == pytest.approx(2.0)


@pytest.mark.parametrize("missing", ["usage", "price"])
def test_a_reply_of_unknown_cost_adds_nothing(missing: str) -> None:
    """Offline judges count no tokens; what has no price cannot be added up."""
    tournament = known(replace(PAID, **{missing: None}))

    assert tournament.spent_usd == 0.0


def test_what_another_tournament_spent_is_its_own() -> None:
    """Its verdicts are used for nothing here, and its cap is its own."""
    elsewhere = recorded([WASTED, PAID], stream=StreamId("other"))

    tournament = fold(tournament_of(STREAM), elsewhere)

    assert KEY in tournament.verdicts
    assert tournament.spent_usd == 0.0


@pytest.mark.parametrize("reason", get_args(FailureReason))
def test_only_replies_count_as_useless_replies(reason: FailureReason) -> None:
    """An error or an expiry is no reply, and takes none of the retries away."""
    tournament = known(failure_of(KEY, reason), failure_of(KEY, reason, attempt=2))

    is_reply = reason in {"refused", "truncated", "unreadable", "empty"}
    assert dict(tournament.useless_replies) == ({KEY: 2} if is_reply else {})


@given(history=any_histories(max_size=12))
def test_spending_is_the_sum_over_all_replies_of_known_cost(history: list[Event]) -> None:
    """Nothing is paid for without being counted, whatever else is recorded."""
    tournament = known(*history)

    costs = [
        cost_usd(event.usage, event.price)
        for event in history
        if isinstance(event, VerdictReceived | JudgeQueryFailed) and event.usage and event.price
    ]
    assert tournament.spent_usd == pytest.approx(sum(costs))
