"""Batches of which nobody knows whether they were sent: found, or sent again, and paid once."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

import pytest

from commands.batching.receiving import BatchOptions
from commands.decisions.recorder import Recorder
from commands.errors import BatchRefused, BatchUncertain, NotFound, ResultsLost, WorkInFlight
from commands.judging.judge import JudgeTask
from commands.ports import Answer, BatchState, NoReply
from ledger.auditing.audit import audit
from ledger.errors import TourneyError
from ledger.store import Ledger
from projections.tournament.remaining import repeats_of
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import planned_batch
from tests.support.builders.batching import (
    N_QUERIES,
    SETTLE_S,
    adopt,
    again,
    batched,
    batching,
    ending,
    forget,
    judged,
    killed_sending,
    left_in_flight,
    open_now,
    paid,
    statuses,
    strangers_batch,
    taken_up,
)
from tests.support.builders.clock import Clock
from tests.support.builders.commands import (
    JUDGE,
    P1,
    P2,
    PowerCut,
    prefer_tuned,
    record_answers,
    types_of,
)
from tests.support.builders.events import NOON, STREAM, key, opened, prompt
from tests.support.builders.money import FlatRate
from tests.support.scripted import ScriptedBatchJudge


@pytest.mark.parametrize("accepted", [True, False])
def test_a_batch_without_an_answer_is_found_or_sent_again(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock, *, accepted: bool
) -> None:
    """Whether money moved shows at the provider only, and a request on its way may show late."""
    port.fail_next(BatchUncertain("the connection was cut"), accepts=accepted)

    done = judged(recorder, port, batching(clock))

    assert done.n_verdicts == N_QUERIES
    assert len(port.asked) == N_QUERIES
    assert statuses(recorder) == (["ended"] if accepted else ["not created", "ended"])
    assert accepted or sum(clock.slept_s) >= SETTLE_S


@pytest.mark.parametrize("accepted", [True, False])
def test_a_batch_of_repeats_is_paid_once(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock, *, accepted: bool
) -> None:
    """It is found by its own keys, and asks in the same words as the queries before."""
    judged(recorder, port, batching(clock))
    sample = [*islice(repeats_of(recorder.state, [P1, P2], JUDGE), 3)]
    task = JudgeTask(JUDGE, (), retries=1, repeats=sample)
    port.fail_next(PowerCut(), accepts=accepted)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        batched(recorder, task, lambda _: port, batching(clock))

    done = batched(again(recorder, ledger), task, lambda _: port, batching(clock))

    assert len(port.asked) == N_QUERIES + 3
    assert (done.n_open, done.n_verdicts) == ((0, 0) if accepted else (3, 3))
    assert types_of(ledger).count("VerdictReceived") == N_QUERIES + 3
    assert types_of(ledger).count("PairReconciled") == 2


def test_a_batch_that_shows_late_is_taken_up(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """It was not listed at first: it is looked for again before it is given up."""
    port.fail_next(BatchUncertain("the connection was cut"), accepts=False)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept_s) == 1:
            port.create(queries)

    how = batching(clock)
    queries = open_now(recorder)
    judged(recorder, port, replace(how, sleep=sleep))

    assert statuses(recorder) == ["ended"]


class Surplus(ScriptedBatchJudge):
    """A provider whose results begin with some that nobody asked for."""

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield them before the answers."""
        yield from (NoReply(key(f"surplus {n}"), "errored", "a stranger's") for n in range(2))
        yield from super().results(provider_batch_id)


def test_surplus_results_do_not_hide_a_batch(recorder: Recorder, clock: Clock) -> None:
    """They are left out, as of any other batch; a stranger's of the same size has none of ours."""
    port = Surplus(prefer_tuned, now=clock.now)
    strangers_batch(recorder, port)
    clock.sleep(1.0)  # so theirs, the older, is looked at first
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    done = judged(recorder, port, batching(clock))

    assert taken_up(recorder) == "batch_2"
    assert (done.n_verdicts, len(port.asked)) == (N_QUERIES, 2 * N_QUERIES)


class Losing(ScriptedBatchJudge):
    """A provider that some orders never reach, by their numbers."""

    def __init__(self, lost: Collection[int], clock: Clock) -> None:
        """Take the numbers, from 1."""
        super().__init__(prefer_tuned, now=clock.now)
        self._lost = lost
        self.ordered_at: list[datetime] = []

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Lose an order, or take it."""
        self.ordered_at.append(self._now())
        if len(self.ordered_at) in self._lost:
            raise BatchUncertain("the connection was cut")
        return super().create(queries)


def test_nothing_more_is_sent_until_a_batch_is_found_or_given_up(
    recorder: Recorder, clock: Clock
) -> None:
    """The next one may be lost likewise; and what never arrived has not used up its only try."""
    port = Losing({2}, clock)

    done = judged(recorder, port, batching(clock, most_queries=1), retries=0)

    begin, cut, *later = port.ordered_at
    assert begin == cut == NOON
    assert min(later) >= NOON + timedelta(seconds=SETTLE_S)
    assert (done.n_verdicts, len(port.asked)) == (N_QUERIES, N_QUERIES)


def test_after_several_batches_that_never_arrive_the_command_ends(
    recorder: Recorder, clock: Clock
) -> None:
    """Five minutes each: whoever waits should learn that nothing comes through."""
    port = Losing(range(1, 9), clock)

    with pytest.raises(BatchUncertain, match="the connection was cut"):
        judged(recorder, port, batching(clock), retries=0)

    assert (len(port.ordered_at), port.asked) == (4, [])


def test_an_earlier_batch_of_the_same_requests_is_not_taken_for_a_lost_one(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Its failures are on record; the answers that were paid for since would be left there."""
    failed: set[str] = set()

    def fail_once(query: JudgeQuery) -> Answer | str:
        if query.query_key in failed:
            return prefer_tuned(query)
        failed.add(query.query_key)
        return NoReply(query.query_key, "errored", "HTTP 500")

    port = ScriptedBatchJudge(fail_once, now=clock.now)
    judged(recorder, port, batching(clock), retries=0)
    clock.sleep(1.0)  # so the earlier one is looked at first
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    done = judged(again(recorder, ledger), port, batching(clock))

    assert (done.n_verdicts, len(port.asked)) == (N_QUERIES, 2 * N_QUERIES)


def test_a_lost_batch_whose_results_are_gone_is_not_sent_again(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """It was paid for: whoever wants to pay once more gives it up first."""
    killed_sending(recorder, port, batching(clock), accepts=True)
    port.lose_results("batch_1")

    with pytest.raises(ResultsLost):
        judged(again(recorder, ledger), port, batching(clock))

    assert len(port.asked) == N_QUERIES


def test_a_providers_clock_that_stands_still_is_not_waited_for(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """A gateway may answer with the time of its first page, for ever."""
    killed_sending(recorder, port, batching(clock), accepts=False)
    port = ScriptedBatchJudge(prefer_tuned, now=lambda: NOON)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        assert sum(clock.slept_s) < 2 * SETTLE_S

    done = judged(again(recorder, ledger), port, replace(batching(clock), sleep=sleep))

    assert done.n_verdicts == N_QUERIES


def test_nothing_can_be_told_of_an_uncertain_batch_without_waiting(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """--no-wait must not send again what may be there."""
    killed_sending(recorder, port, batching(clock), accepts=False)

    told: list[str] = []

    with pytest.raises(WorkInFlight, match="4 requests in 1 batch"):
        judged(again(recorder, ledger), port, batching(clock, waits=False, tell=told.append))

    assert port.asked == []
    assert told == ["it will be known in 300 s whether a batch was created"]


def test_a_gold_answer_corrected_meanwhile_does_not_lose_the_batch(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """What was planned is what the ledger said then, not what the settings say now."""
    killed_sending(recorder, port, batching(clock), accepts=True)
    second = record_answers(
        again(recorder, ledger),
        opened(prompts=[prompt("p1", gold="ibuprofen"), prompt("p2")], opening=2),
    )

    done = judged(second, port, batching(clock))

    assert types_of(ledger).count("VerdictReceived") == N_QUERIES + 2
    assert done.n_open == 2


class FullQueue(ScriptedBatchJudge):
    """A provider that takes one batch at a time."""

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Refuse a batch while another has not ended."""
        if any(not state.has_ended for state in self.created_since(NOON)):
            raise BatchRefused("the queue is full")
        return super().create(queries)


def test_a_full_queue_is_waited_for(recorder: Recorder, clock: Clock) -> None:
    """A provider that takes no more now takes more when a batch has ended."""
    port = FullQueue(prefer_tuned, ends_at_once=False, now=clock.now)

    done = judged(recorder, port, ending(port, batching(clock, most_queries=1)), retries=0)

    assert done.n_verdicts == N_QUERIES
    assert statuses(recorder).count("ended") == N_QUERIES


def test_another_workspaces_key_gives_nothing_up(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """It lists no batch of ours, which does not mean that there is none."""
    judged(recorder, port, batching(clock), limit=2)
    killed_sending(again(recorder, ledger), port, batching(clock), accepts=True)
    stranger = ScriptedBatchJudge(prefer_tuned, now=clock.now)

    with pytest.raises(TourneyError, match="does not see batch batch_1"):
        judged(again(recorder, ledger), stranger, batching(clock))

    assert stranger.asked == []


class Timeless(ScriptedBatchJudge):
    """A provider that says nothing of the time."""

    def now(self) -> datetime | None:
        """Say nothing."""
        return None


def test_a_provider_that_does_not_tell_the_time_is_asked_by_our_clock(
    recorder: Recorder, clock: Clock
) -> None:
    """It may be a day off."""
    port = Timeless(prefer_tuned, now=clock.now)
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    judged(recorder, port, batching(Clock(NOON + timedelta(hours=20))))

    assert len(port.asked) == N_QUERIES


@pytest.mark.parametrize("hours", [3, 25, pytest.param(72, marks=pytest.mark.nightly)])
def test_a_batch_whose_results_cannot_be_read_is_not_taken_for_a_strangers(
    recorder: Recorder, clock: Clock, hours: int
) -> None:
    """A web page names no query: whose batch it is shows once its results can be read."""
    healed_at = clock.now() + timedelta(hours=hours)

    class Blocked(ScriptedBatchJudge):
        """A provider behind a proxy that asks to sign in."""

        def results(self, provider_batch_id: str) -> Iterator[Answer]:
            """Yield nothing until somebody has."""
            if clock.now() >= healed_at:
                yield from super().results(provider_batch_id)

    port = Blocked(prefer_tuned, now=clock.now)
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    done = judged(recorder, port, batching(clock))

    assert (done.n_verdicts, len(port.asked)) == (N_QUERIES, N_QUERIES)


def test_a_batch_is_adopted_again_only_for_queries_without_a_result(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Else it would take a batch's answers for another's, or nothing would come of it."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False))
    with pytest.raises(NotFound, match="in flight: `tourney batch wait`"):
        adopt(recorder, port, "batch_1")
    port.end()
    port.lose_results("batch_1")
    forget(recorder, port, "batch_1")
    port.find_results("batch_1")

    adopt(recorder, port, "batch_1")
    done = judged(again(recorder, ledger), port, batching(clock))

    assert (done.n_open, done.n_reconciled, len(port.asked)) == (0, 2, N_QUERIES)
    assert statuses(again(recorder, ledger)) == ["ended", "ended"]
    with pytest.raises(NotFound, match="each of its requests has a result"):
        adopt(again(recorder, ledger), port, "batch_1")
    assert audit(ledger) == ()


class Halved(ScriptedBatchJudge):
    """A provider that keeps few results of its first batch; that may pass."""

    n_kept = N_QUERIES
    n_counted: int | None = N_QUERIES

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Count the results of the first batch."""
        state = super().retrieve(provider_batch_id)
        is_odd = provider_batch_id == "batch_1" and state.has_ended
        return replace(state, n_results=self.n_counted) if is_odd else state

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield the results that it keeps."""
        n_kept = self.n_kept if provider_batch_id == "batch_1" else None
        yield from islice(super().results(provider_batch_id), n_kept)


def _half_sent_again(
    recorder: Recorder, ledger: Ledger, clock: Clock, how: BatchOptions
) -> ScriptedBatchJudge:
    """Give up a batch, send half of its queries again, and take it up again."""
    port = Halved(paid, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, how)
    port.end()
    port.lose_results("batch_1")
    forget(recorder, port, "batch_1")
    left_in_flight(again(recorder, ledger), port, how, limit=2)
    port.find_results("batch_1")
    adopt(again(recorder, ledger), port, "batch_1")
    return port


def test_a_batch_that_is_taken_up_again_leaves_another_its_queries(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """What was sent again is paid again: its own reply is the one to record, and to count."""
    how = batching(clock, waits=False, pricing=FlatRate(0.2))
    port = _half_sent_again(recorder, ledger, clock, how)
    left_in_flight(again(recorder, ledger), port, how)
    n_first = len(again(recorder, ledger).state.verdicts)
    port.end()

    judged(again(recorder, ledger), port, how)

    state = again(recorder, ledger).state
    assert (n_first, len(state.verdicts), len(port.asked)) == (2, N_QUERIES, N_QUERIES + 2)
    assert state.spent_usd == pytest.approx(4 * 0.11)
    assert audit(ledger) == ()


@pytest.mark.parametrize("n_kept", [2, 3])
def test_what_it_lacks_is_not_waited_for_though_half_of_it_was_sent_again(
    recorder: Recorder, ledger: Ledger, clock: Clock, n_kept: int
) -> None:
    """The provider counts the results of all queries; those of the others are among them."""
    how = batching(clock, waits=False)
    port = _half_sent_again(recorder, ledger, clock, how)
    assert isinstance(port, Halved)
    port.n_kept = port.n_counted = n_kept

    with pytest.raises(WorkInFlight, match="2 requests in 1 batch"):
        judged(again(recorder, ledger), port, how)

    assert statuses(again(recorder, ledger)) == ["ended", "in flight", "ended"]


def test_a_batch_is_taken_up_again_more_than_once(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Each time it is only for what has no result by then."""
    port = Halved(prefer_tuned, now=clock.now)
    port.n_kept = 2
    how = batching(clock, waits=False)
    left_in_flight(recorder, port, how)

    for _ in range(2):
        forget(again(recorder, ledger), port, "batch_1")
        adopt(again(recorder, ledger), port, "batch_1")
    port.n_kept = N_QUERIES
    judged(again(recorder, ledger), port, how)

    assert statuses(again(recorder, ledger)) == ["ended", "ended", "ended"]
    assert len(again(recorder, ledger).state.verdicts) == len(port.asked) == N_QUERIES


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(days=2)])
def test_a_clock_that_was_ahead_at_the_plan_is_paid_once(
    recorder: Recorder, ledger: Ledger, clock: Clock, ahead: timedelta
) -> None:
    """The provider dates the batch by its own clock, before the plan; and nobody waits for days."""
    port, ours = Timeless(prefer_tuned, now=clock.now), Clock(NOON + ahead)
    killed_sending(recorder, port, batching(ours), accepts=True)

    done = judged(again(recorder, ledger), port, batching(clock))

    assert (len(port.asked), done.n_reconciled) == (N_QUERIES, 2)
    assert clock.slept_s == []


def test_a_plan_from_the_future_is_given_up_as_soon_as_any_other(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """The clock was set back by two days; whoever waited for them would wait for nothing."""
    port = Timeless(prefer_tuned, now=clock.now)
    killed_sending(recorder, port, batching(Clock(NOON + timedelta(days=2))), accepts=False)

    done = judged(again(recorder, ledger), port, batching(clock))

    assert (len(port.asked), done.n_reconciled) == (N_QUERIES, 2)
    assert SETTLE_S <= sum(clock.slept_s) < SETTLE_S + 66


class Busy(ScriptedBatchJudge):
    """A provider whose first batch has not ended when batches are listed."""

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield batches, all but the first as they are."""
        for state in super().created_since(moment):
            yield replace(state, has_ended=False) if state.provider_batch_id == "batch_1" else state


def test_a_strangers_running_batch_is_not_waited_for_where_ours_has_ended(
    recorder: Recorder, clock: Clock
) -> None:
    """What a batch asks shows when it has ended, which may take a day."""
    port = Busy(prefer_tuned, now=clock.now)
    strangers_batch(recorder, port)
    clock.sleep(1.0)
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    judged(recorder, port, batching(clock))

    assert (statuses(recorder), clock.slept_s) == (["ended"], [1.0])


def test_a_plan_that_is_merged_in_unsent_is_settled_before_all_is_done(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Another host died before it sent it; nothing of ours waits for it, and nothing fails."""
    theirs = planned_batch(key("theirs"), number=7, by=JUDGE)

    class Merging(ScriptedBatchJudge):
        """A provider that is looked at while somebody merges."""

        def retrieve(self, provider_batch_id: str) -> BatchState:
            """Tell how a batch is doing, after that."""
            ledger.append(STREAM, [theirs])
            return super().retrieve(provider_batch_id)

    port = Merging(prefer_tuned, now=clock.now)
    done = judged(recorder, port, batching(clock))

    assert (done.n_verdicts, done.n_reconciled) == (N_QUERIES, 2)
    assert statuses(recorder) == ["ended", "not created"]


def test_a_batch_that_tells_its_queries_is_taken_up_before_it_ends(
    recorder: Recorder, clock: Clock
) -> None:
    """Nobody waits a day to learn whose it is, nor takes another's for it."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, tells_queries=True, now=clock.now)
    strangers_batch(recorder, port)
    clock.sleep(1.0)
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    left_in_flight(recorder, port, batching(clock, waits=False))

    assert taken_up(recorder) == "batch_2"
    assert clock.slept_s == [1.0]


@pytest.mark.parametrize("tells_queries", [False, True])
def test_a_batch_is_adopted_by_name_as_soon_as_its_queries_are_known(
    recorder: Recorder, ledger: Ledger, clock: Clock, *, tells_queries: bool
) -> None:
    """Of some providers that is when it has ended; a stranger's is never adopted."""
    port = ScriptedBatchJudge(
        prefer_tuned, ends_at_once=False, tells_queries=tells_queries, now=clock.now
    )
    strangers_batch(recorder, port)
    killed_sending(recorder, port, batching(clock), accepts=True)
    second = again(recorder, ledger)

    with pytest.raises(NotFound, match="no batch planned" if tells_queries else "has not ended"):
        adopt(second, port, "batch_1")
    with pytest.raises(NotFound, match="has 'batch_9'"):
        adopt(second, port, "batch_9")
    if not tells_queries:
        port.end()
    adopt(second, port, "batch_2")

    assert statuses(second) == ["in flight"]


def test_a_batch_that_the_provider_deleted_can_be_given_up(
    recorder: Recorder, clock: Clock
) -> None:
    """Else it would be waited for for ever."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False))

    port.delete("batch_1")
    forget(recorder, port, "batch_1")

    assert statuses(recorder) == ["ended"]
    assert len(open_now(recorder)) == N_QUERIES


def test_a_batch_that_is_not_in_flight_or_alive_cannot_be_given_up(
    recorder: Recorder, clock: Clock
) -> None:
    """A typing error must not write off what was paid for."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False))

    with pytest.raises(NotFound, match="batch_9"):
        forget(recorder, port, "batch_9")
    with pytest.raises(NotFound, match="can still be received"):
        forget(recorder, port, "batch_1")
