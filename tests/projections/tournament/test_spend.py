"""Spend: every token and dollar on record, by judge, dimension and day."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import replace

from ledger.events.judging import JudgeQueryFailed, JudgeQuerySubmitted, VerdictReceived
from ledger.events.money import Usage, cost_usd
from ledger.events.registry import Event
from ledger.identity import Dimension, JudgeId, StreamId
from ledger.recorded import Recorded, microseconds
from projections.fold import fold
from projections.tournament.requests import NO_REQUESTS, Bill, evolve_requests
from projections.tournament.spend import Spend, SpendKey, spend_of
from tests.support.builders.events import (
    NOON,
    STREAM,
    judge,
    key,
    known,
    opened,
    recorded,
    registrations,
    verdict,
)
from tests.support.builders.money import OPUS, paid, paid_in_vain, put, requests_of
from tests.support.builders.scores import paid_score, put_answer, scored_plan
from tests.support.builders.worlds import RUBRICS, answered, failure, failure_of, matches_of
from tests.support.strategies.tournaments import tournament_histories

USED = Usage(n_input=100, n_output=200, n_cache_write_5m=900)
WRITTEN_USD = 8_900e-6  # 100*4 + 900*5 + 200*20, in millionths
BILLED = judge("opus", provider="anthropic", model="claude-opus-5-5")
TODAY = NOON.date()


def spent(*events: Event, stream: StreamId = STREAM) -> Spend:
    """Return what a tournament spent after events."""
    return fold(spend_of(stream), recorded(events, stream=STREAM))


WORLD = answered(opened(rubrics=RUBRICS, judges=[BILLED]))
MATCH, UTILITY = matches_of(known(*WORLD))


def only(spend: Spend) -> Bill:
    """Return the bill, of which there is one."""
    (bill,) = spend.bills.values()
    return bill


def test_replies_are_added_up_by_judge_dimension_and_day() -> None:
    """Whoever pays asks for what, and since when."""
    spend = spent(
        *WORLD,
        put(MATCH, MATCH.forward, by="opus"),
        put(UTILITY, UTILITY.forward, by="opus"),
        put(UTILITY, UTILITY.swapped, by="opus"),
        paid(MATCH.forward.query_key, USED, by="opus"),
        paid(UTILITY.forward.query_key, USED, by="opus"),
        paid(UTILITY.swapped.query_key, USED, by="opus"),
    )

    counts = {key: bill.n_replies for key, bill in spend.bills.items()}
    assert counts == {
        SpendKey(JudgeId("opus"), Dimension("factuality"), TODAY): 1,
        SpendKey(JudgeId("opus"), Dimension("utility"), TODAY): 2,
    }
    assert spend.total.tokens == Usage(n_input=300, n_output=600, n_cache_write_5m=2_700)
    assert spend.total.usd == pytest.approx(3 * WRITTEN_USD)


def test_a_day_is_a_day_in_utc() -> None:
    """Bills of a provider are by UTC; a run past midnight is on two of them."""
    midnight = datetime(2026, 4, 28, tzinfo=UTC)
    replies = [paid(key(name), USED) for name in ("late", "early")]
    times = (midnight - timedelta(microseconds=1), midnight)

    spend = fold(
        spend_of(STREAM),
        [
            Recorded(n, STREAM, n, microseconds(at), bytes(32), event)
            for n, (at, event) in enumerate(zip(times, replies, strict=True), start=1)
        ],
    )

    assert sorted(key.day for key in spend.bills) == [date(2026, 4, 27), date(2026, 4, 28)]


@pytest.mark.no_cover
def test_replies_whose_tokens_nobody_tells_count_at_their_worst() -> None:
    """A server without usage does not judge for nothing; its price may be unknown as well."""
    told = replace(verdict(MATCH.forward.query_key), worst_usd=0.25)
    in_vain = replace(failure(MATCH.swapped, "unreadable"), worst_usd=0.5)

    total = spent(*WORLD, told, in_vain).total

    assert (total.n_maybe_billed, total.maybe_usd, total.n_replies) == (2, 0.75, 0)
    unknown = spent(*WORLD, replace(told, worst_usd=None)).total
    assert (unknown.n_maybe_billed, unknown.most_usd) == (1, None)
    assert spent(*WORLD, verdict(MATCH.forward.query_key)).total == Bill()


def test_what_was_paid_for_no_verdict_is_known_apart() -> None:
    """It is money too, and what is to be done about it differs."""
    bill = only(
        spent(
            *WORLD,
            put(MATCH, MATCH.forward, by="opus"),
            paid_in_vain(MATCH.forward, USED),
            put(MATCH, MATCH.forward, by="opus", attempt=2),
            paid_in_vain(MATCH.forward, USED, reason="refused", attempt=2),
            put(MATCH, MATCH.swapped, by="opus"),
            paid(MATCH.swapped.query_key, USED),
        )
    )

    assert (bill.n_replies, bill.n_failed) == (3, 2)
    assert bill.usd == pytest.approx(3 * WRITTEN_USD)
    assert bill.failed_usd == pytest.approx(2 * WRITTEN_USD)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("usage", "saved_millionths"),
    [
        (Usage(n_input=100, n_output=9, n_cache_read=900), 900 * (4 - 0.2)),
        (Usage(n_input=100, n_output=9, n_cache_write_5m=900), -900),  # 5 in place of 4 each
        (Usage(n_input=100, n_output=9, n_cache_write_1h=900), -900 * 4),  # 8 in place of 4 each
        (Usage(n_input=1_000, n_output=9), 0),
    ],
)
def test_what_the_cache_saved_is_told_against_plain_input(
    usage: Usage, saved_millionths: float
) -> None:
    """Below some share of hits a cache costs more than it saves."""
    bill = only(spent(*WORLD, paid(key("q"), usage)))

    assert bill.saved_usd * 1e6 == pytest.approx(saved_millionths)


def test_a_reply_without_a_price_is_no_reply_for_nothing() -> None:
    """Its dollars are not known, so no sum with it is; its tokens are."""
    bill = only(spent(*WORLD, paid(key("q"), USED, None), paid(key("p"), USED)))

    assert (bill.n_replies, bill.n_unpriced) == (2, 1)
    assert bill.usd == pytest.approx(WRITTEN_USD)
    assert bill.tokens.n_input == 200


def test_a_judge_on_the_users_machine_needs_no_price() -> None:
    """It counts tokens and costs nothing; that is known."""
    local = judge("olmo", provider="hf", model="olmo")
    events = (*registrations(judges=[local]), paid(key("q"), USED, None, by="olmo"))

    bill = only(spent(*events))

    assert (bill.n_unpriced, bill.usd) == (0, 0.0)


def test_a_judge_that_moved_to_a_provider_needs_a_price_from_then_on() -> None:
    """A label may come to stand for another judge."""
    local = judge("olmo", provider="hf", model="olmo")
    hosted = judge("olmo", provider="endpoint", model="olmo")
    events = (*registrations(judges=[local, hosted]), paid(key("q"), USED, None, by="olmo"))

    assert only(spent(*events)).n_unpriced == 1


def test_a_request_that_may_have_been_billed_is_on_the_bill() -> None:
    """Nobody knows whether it cost anything, so nobody may read that it did not."""
    lost = replace(failure(MATCH.forward, "errored"), fate="perhaps billed", worst_usd=0.25)
    busy = replace(failure(MATCH.swapped, "errored"), fate="refused")

    bill = only(spent(*WORLD, put(MATCH, MATCH.forward), lost, busy))

    assert bill == Bill(n_maybe_billed=1, maybe_usd=0.25)


def test_a_request_that_has_not_ended_may_have_been_billed() -> None:
    """Its process was killed, perhaps, and the answer came to nobody."""
    sent = replace(put(MATCH, MATCH.forward), worst_usd=0.25)
    in_batch = replace(put(MATCH, MATCH.swapped), batch_key=key("batch"))

    under_way = spent(*WORLD, sent, in_batch)
    answered = spent(*WORLD, sent, in_batch, paid(MATCH.forward.query_key, USED))

    assert only(under_way) == Bill(n_maybe_billed=1, maybe_usd=0.25)
    assert answered.total.n_maybe_billed == 0
    assert answered.total.n_replies == 1


def asked_together() -> tuple[tuple[Event, ...], Sequence[JudgeQuerySubmitted]]:
    """Return a tournament, and a request that asks about both of its dimensions."""
    sent = [put(match, match.forward) for match in (MATCH, UTILITY)]
    return WORLD, [replace(each, request=key("request")) for each in sent]


def test_a_reply_on_two_dimensions_is_one_in_all() -> None:
    """Each bears its part of the cost; asked again for one of them, there is another reply."""
    opening, sent = asked_together()
    first, second = sent
    part = paid(first.query_key, USED)
    lacking = replace(failure_of(second.query_key), usage=USED, price=OPUS)
    again = replace(second, attempt=2)

    once = spent(*opening, *sent, part, lacking)
    twice = spent(*opening, *sent, part, lacking, again, paid(second.query_key, USED))

    assert {key.dimension: bill.n_replies for key, bill in once.bills.items()} == {
        first.dimension: 1,
        second.dimension: 1,
    }
    assert (once.total.n_replies, once.total.n_failed) == (1, 1)
    assert once.total.usd == pytest.approx(2 * WRITTEN_USD)
    assert (twice.total.n_replies, twice.total.n_failed) == (2, 1)


def test_a_request_on_two_dimensions_is_lost_once() -> None:
    """Whether it has not ended, or was perhaps billed; and its reply fails once."""
    opening, sent = asked_together()
    at_risk = [replace(each, worst_usd=0.25) for each in sent]
    failed = [replace(failure_of(each.query_key), usage=USED, price=OPUS) for each in sent]

    under_way, in_vain = spent(*opening, *at_risk), spent(*opening, *sent, *failed)

    assert under_way.total == Bill(n_maybe_billed=1, maybe_usd=0.5)
    assert (in_vain.total.n_replies, in_vain.total.n_failed) == (1, 1)
    assert sum(bill.n_failed for bill in in_vain.bills.values()) == 2


def test_another_tournaments_replies_are_on_its_own_bill() -> None:
    """Several share a ledger; what one paid for, the others have for nothing."""
    assert not spent(*WORLD, paid(key("q"), USED), stream=StreamId("other")).bills


@st.composite
def paid_histories(draw: DrawFn) -> list[Event]:
    """Draw a tournament some of whose replies took tokens, at some price or none."""
    counts = st.integers(min_value=0, max_value=10**6)
    usages = st.builds(Usage, counts, counts, counts, counts, counts)
    prices = st.none() | st.just(OPUS) | st.just(replace(OPUS, input=1.0, table="another"))
    events: list[Event] = []
    for event in draw(tournament_histories()):
        match event:
            case VerdictReceived() | JudgeQueryFailed():
                usage, price = draw(st.none() | usages), draw(prices)
                events.append(replace(event, usage=usage, price=price))
            case _:
                events.append(event)
    return events


@given(events=paid_histories())
def test_the_bills_add_up_to_what_the_cap_counts(events: list[Event]) -> None:
    """The table and the cap must never disagree; nor may a reply be lost between groups."""
    spend = spent(*events)
    replies = [
        event
        for event in events
        if isinstance(event, VerdictReceived | JudgeQueryFailed) and event.usage is not None
    ]

    usd = sum(cost_usd(each.usage, each.price) for each in replies if each.usage and each.price)
    assert spend.total.usd == pytest.approx(usd)
    assert known(*events).spent_usd == pytest.approx(usd)
    assert spend.total.n_replies == len(replies)
    assert spend.total.tokens.n_output == sum(each.usage.n_output for each in replies if each.usage)
    assert sum(bill.n_unpriced for bill in spend.bills.values()) == spend.total.n_unpriced


def test_sums_with_a_reply_of_unknown_price_are_unknown() -> None:
    """Whoever reads the bill as data must not take a part for the whole."""
    priced = only(spent(*WORLD, paid(key("q"), USED))).fields
    partly = only(spent(*WORLD, paid(key("q"), USED, None), paid(key("p"), USED))).fields

    assert priced["usd"] == priced["priced_usd"] == pytest.approx(WRITTEN_USD)
    assert (partly["usd"], partly["failed_usd"], partly["cache_saved_usd"]) == (None, None, None)
    assert partly["priced_usd"] == pytest.approx(WRITTEN_USD)


def test_requests_to_entrants_are_apart_from_judges() -> None:
    """They are of no dimension; another tournament's are on its own bill."""
    submitted, settled = requests_of("base", 0.25)
    events = [*opened(), submitted, settled]

    spend, elsewhere = spent(*events), spent(*events, stream=StreamId("other"))

    assert spend.entrants == evolve_requests(evolve_requests(NO_REQUESTS, submitted), settled)
    assert spend.entrants.usd == 0.25
    assert not spend.bills
    assert elsewhere.entrants == NO_REQUESTS


def test_scores_of_answers_are_added_up_by_evaluation() -> None:
    """A query that has not been answered may have been billed."""
    planned = scored_plan()
    waiting = put_answer(key("r"), planned, 1, worst_usd=0.5)

    spend = spent(put_answer(key("q"), planned, 0), waiting, paid_score(key("q"), USED, OPUS))

    bill = spend.bills[SpendKey(JudgeId("ann"), Dimension("recall"), TODAY)]
    assert (bill.n_replies, bill.n_maybe_billed, bill.maybe_usd) == (1, 1, 0.5)
    assert bill.usd == pytest.approx(WRITTEN_USD)
