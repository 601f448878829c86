"""Batches: where each is, whose it is, and what is asked by it at this moment."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registry import Event
from ledger.events.values import type_name
from ledger.identity import Digest, StreamId
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.requests import BATCH_EVENTS, Batch, open_batches
from tests.support.builders.batches import ended, not_created, planned_batch, sent
from tests.support.builders.events import NOON, STREAM, key, known, opened, recorded
from tests.support.strategies.events import histories as any_histories
from tests.support.strategies.values import digests

PLAN = planned_batch(key("one"), key("two"))
KEY = PLAN.batch_key


def batch_after(*events: Event) -> Batch:
    """Return the batch of the plan."""
    return known(PLAN, *events).batches[KEY]


@pytest.mark.parametrize(
    ("steps", "status", "kept_until", "is_open"),
    [
        ((), "unknown", None, True),
        ((sent(KEY),), "in flight", NOON + timedelta(days=29), True),
        ((sent(KEY), ended(KEY)), "ended", NOON + timedelta(days=29), False),
        ((not_created(KEY),), "not created", None, False),
    ],
)
def test_a_batch_is_open_until_its_end_is_on_record(
    steps: tuple[Event, ...], status: str, kept_until: datetime | None, *, is_open: bool
) -> None:
    """Until then its queries may be paid for at any moment, so nobody may ask them again."""
    batch = batch_after(*steps)

    assert (batch.planned, batch.status, batch.is_open) == (PLAN, status, is_open)
    assert batch.results_kept_until == kept_until
    assert known(PLAN, *steps).in_flight == (set(PLAN.queries) if is_open else set())


def test_a_batch_knows_when_and_by_whom_it_was_planned() -> None:
    """A batch of unknown fate is looked for at the provider from that time on."""
    events = recorded([PLAN], stream=StreamId("other"))

    batch = fold(tournament_of(STREAM), events).batches[KEY]

    assert batch.stream == "other"
    assert batch.recorded.recorded_at == NOON


def test_what_a_later_batch_asks_is_in_flight_although_an_earlier_one_ended() -> None:
    """What expired is asked again by the next batch."""
    again = planned_batch(key("two"), key("three"), number=2)

    tournament = known(PLAN, sent(KEY), again, ended(KEY))

    assert tournament.in_flight == set(again.queries)


def test_batches_are_no_news_for_ratings() -> None:
    """Ratings published while a batch is out are those that a rerun would publish."""
    before = known(*opened())

    after = known(*opened(), PLAN, sent(KEY), ended(KEY))

    assert after.newest == before.newest
    assert after.version == before.version + 3


def test_a_step_of_a_batch_that_nobody_planned_is_passed_over() -> None:
    """A part of a ledger may hold the end of what began in another part."""
    steps = (sent(KEY), not_created(KEY), ended(KEY))

    assert dict(known(*steps).batches) == {}
    assert open_batches(recorded([*steps, *opened()])) == ()


def test_a_plan_that_comes_again_from_elsewhere_reopens_nothing() -> None:
    """A batch that ended must not be waited for again."""
    ours = recorded([PLAN, sent(KEY), ended(KEY)])
    theirs = recorded([PLAN], stream=StreamId("theirs"))

    tournament = fold(tournament_of(STREAM), [*ours, *theirs])

    assert tournament.batches[KEY].status == "ended"


def test_open_batches_are_those_of_every_tournament_in_the_order_of_their_plans() -> None:
    """What goes on at a provider is told of the whole ledger."""
    other = planned_batch(key("three"), number=2)
    theirs = recorded([PLAN, sent(KEY), *opened()], stream=StreamId("theirs"))
    ours = recorded([other], stream=STREAM)

    found = open_batches([*theirs, *ours])

    assert [(each.stream, each.planned, each.status) for each in found] == [
        ("theirs", PLAN, "in flight"),
        (STREAM, other, "unknown"),
    ]


@given(history=any_histories())
def test_open_batches_are_those_of_a_tournament_and_need_no_other_event(
    history: list[Event],
) -> None:
    """Both are told by the same steps."""
    whole = recorded(history)

    found = open_batches(each for each in whole if type_name(each.event) in BATCH_EVENTS)

    assert found == open_batches(whole)
    assert {*found} == {each for each in known(*history).batches.values() if each.is_open}


@given(history=any_histories(), queries=st.lists(digests(), max_size=3))
def test_nothing_is_in_flight_but_what_open_batches_ask(
    history: list[Event], queries: list[Digest]
) -> None:
    """Whatever else happened: what was planned last, and did not end, holds its queries."""
    plan = planned_batch(*queries)

    tournament = known(*history, plan)

    assert tournament.in_flight >= set(queries)
    assert tournament.in_flight == {
        each
        for batch in tournament.batches.values()
        if batch.status in {"unknown", "in flight"}
        for each in batch.planned.queries
    }


def test_what_nothing_is_known_of_may_have_cost_its_share() -> None:
    """All shares together are what the batch may have cost, whose price may be unknown."""
    for worst_usd, share in [(0.5, 0.25), (None, None)]:
        plan = replace(planned_batch(key("a"), key("b")), worst_usd=worst_usd)
        (batch,) = known(plan).own_batches
        assert batch.worst_usd_each == share
