"""One battle: who said what, whom the judge preferred in each order, or why nobody."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ledger.events.registry import Event
from projections.battles.details import BattleDetails, DimensionResult, battle_details
from projections.tournament.matches import planned_responses
from tests.support.builders.batches import planned_batch
from tests.support.builders.events import entrant, known, opened, responses
from tests.support.builders.money import put
from tests.support.builders.worlds import (
    SLOT_A,
    TIE,
    A,
    Said,
    answered,
    everything,
    failure,
    heard,
    matches_of,
    planned_pairings,
    questions_of,
    reconciled,
    unanswerable,
)

TWINS = {("base", "p1"): "the same", ("tuned", "p1"): "the same"}


def details_of(events: Sequence[Event]) -> BattleDetails:
    """Return the only battle of events."""
    tournament = known(*events)
    return battle_details(tournament, planned_pairings(tournament), tournament.panel[0])


def only(events: Sequence[Event]) -> DimensionResult:
    """Return what became of it on its only dimension."""
    (result,) = details_of(events).dimensions
    return result


@pytest.mark.parametrize(
    ("said", "preferred", "outcome"),
    [
        (A, ["base", "base"], "a"),
        (SLOT_A, ["base", "tuned"], "inconsistent"),
        (TIE, [None, None], "tie"),
    ],
)
def test_a_verdict_names_the_entrant_that_stood_in_the_slot(
    said: Said, preferred: list[str | None], outcome: str
) -> None:
    """Nobody should have to work out who stood in slot A."""
    result = only(heard(answered(opened()), [said]))

    assert result.settlement.status == outcome
    assert result.settlement.battle_id == result.settlement.pairing.battle_id
    assert [order.first for order in result.orders] == ["base", "tuned"]
    assert [order.preferred for order in result.orders] == preferred
    assert [order.reply for order in result.orders] == [f"VERDICT: {each}" for each in said]
    assert {order.status for order in result.orders} == {"answered"}


def test_a_failed_query_says_why_and_what_was_replied() -> None:
    """A refusal is another finding than a reply that nobody can read."""
    events = answered(opened())
    forward, swapped = questions_of(known(*events))
    lost = replace(failure(swapped), reply="Both are fine.", detail="no final line")

    first, second = only((*events, failure(forward, "refused"), lost)).orders

    assert (first.status, first.reply, first.verdict) == ("refused", "", None)
    expected = ("unreadable", "Both are fine.", "no final line")
    assert (second.status, second.reply, second.detail) == expected


def test_what_is_in_a_batch_or_sent_alone_is_in_flight() -> None:
    """Its verdict may have been paid for already."""
    events = answered(opened())
    (match,) = matches_of(known(*events))
    alone = replace(put(match, match.swapped), worst_usd=0.1)

    result = only((*events, planned_batch(match.forward_key), alone))

    assert [order.status for order in result.orders] == ["in_flight", "in_flight"]


def test_identical_responses_tie_without_being_asked() -> None:
    """There is no reply to look for."""
    events = (*opened(), *responses(known(*opened()), TWINS))
    (match,) = matches_of(known(*events))
    tied = replace(reconciled(match, "tie"), basis="identical")

    before, after = only(events), only((*events, tied))

    assert [order.status for order in before.orders] == ["pending", "pending"]
    assert [order.status for order in after.orders] == ["identical", "identical"]


def test_a_side_has_its_response_or_why_there_is_none() -> None:
    """Whoever looks at a battle that never was wants to know why."""
    tournament = known(*opened())
    base, _ = planned_responses(tournament, everything(tournament))

    owed = details_of(opened())
    failed = details_of((*opened(), unanswerable(base)))
    there = details_of(answered(opened()))

    assert (owed.a.response, owed.a.failure) == (None, None)
    assert failed.a.failure is not None
    assert failed.a.failure.reason == "prompt_too_long"
    assert [order.status for order in failed.dimensions[0].orders] == ["no_response"] * 2
    assert there.b.response is not None
    assert there.b.response.text == "tuned on p1"


def test_an_id_stays_when_the_roster_is_reordered() -> None:
    """An id that was written down yesterday still means the same battle."""
    one, other = (
        planned_pairings(known(*opened(entrants=[entrant(name) for name in names])))[0]
        for names in (("base", "tuned"), ("tuned", "base"))
    )

    assert one.battle_id == other.battle_id
    assert one.entrants == {"base", "tuned"}
