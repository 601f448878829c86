"""Judging in batches: what is sent, when, and under which cap."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchBusy,
    BatchGone,
    BatchRefused,
    BatchTooLarge,
    NoCredentials,
    NotAnswering,
    NothingReadable,
    ProviderError,
    SpendLimitReached,
    WorkInFlight,
    counted,
)
from commands.judging.batches import attending_batches
from commands.judging.judge import JudgeTask, JudgingSummary
from commands.ports import BatchState
from commands.spending.budget import BudgetReached
from ledger.errors import TourneyError
from ledger.events.judging import JudgeBatchPlanned
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.identity import PromptId, StreamId
from ledger.recorded import Receipt
from ledger.store import Ledger
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import planned_batch, sent
from tests.support.builders.batching import (
    MERGED,
    N_QUERIES,
    again,
    batched,
    batching,
    ending,
    judged,
    merge_verdicts,
    open_now,
    paid,
    receiver,
    statuses,
)
from tests.support.builders.clock import Clock
from tests.support.builders.commands import JUDGE, P1, P2, prefer_tuned, record_answers, types_of
from tests.support.builders.events import STREAM, judge, key, opened, prompt
from tests.support.builders.money import FlatRate, MeanwhileMerged
from tests.support.scripted import ScriptedBatchJudge

PILOT = judge("pilot", model="small")


def test_a_batch_is_planned_sent_received_and_ended_in_this_order_and_once(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """The intent must be on the disk before money can move, and the end after the last answer."""
    n_before = len(types_of(ledger))

    done, later = (judged(again(recorder, ledger), port, batching(clock)) for _ in range(2))

    assert types_of(ledger)[n_before:] == [
        "JudgeBatchPlanned",
        "JudgeBatchSubmitted",
        *["JudgeQuerySubmitted"] * N_QUERIES,
        *["VerdictReceived"] * N_QUERIES,
        "JudgeBatchEnded",
        *["PairReconciled"] * 2,
    ]
    assert done == JudgingSummary(N_QUERIES, N_QUERIES, 0, 2)
    assert later == JudgingSummary(0, 0, 0, 0)


@pytest.mark.parametrize("n_taken", [1, 2])
def test_batches_shrink_until_the_provider_takes_them(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock, n_taken: int
) -> None:
    """A gateway may take less than the provider, and nobody knows its limit."""
    for _ in range(N_QUERIES // n_taken // 2):
        port.fail_next(BatchTooLarge("HTTP 413", was_sent=False), accepts=False)
    told: list[str] = []

    done = judged(recorder, port, batching(clock, tell=told.append))

    batches = recorder.state.batches.values()
    sizes = [len(each.planned.queries) for each in batches if each.status == "ended"]
    assert (done.n_verdicts, len(port.asked)) == (N_QUERIES, N_QUERIES)
    assert sizes == [n_taken] * (N_QUERIES // n_taken)
    most = counted(n_taken, "request")
    assert f"HTTP 413; from now on a batch has {most} at most" in told


def test_one_query_that_is_too_large_for_a_batch_ends_the_command(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """There is nothing left to halve."""
    for _ in range(3):
        port.fail_next(BatchTooLarge("HTTP 413", was_sent=False), accepts=False)

    with pytest.raises(BatchTooLarge, match="HTTP 413"):
        judged(recorder, port, batching(clock))

    assert port.asked == []


@pytest.mark.parametrize("why", [BatchRefused("too large"), SpendLimitReached("monthly limit")])
def test_a_refused_batch_is_dropped_and_said(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock, why: TourneyError
) -> None:
    """Nothing is paid for a batch that was refused, and its queries stay open."""
    port.fail_next(why, accepts=False)
    with pytest.raises(type(why), match=str(why)):
        judged(recorder, port, batching(clock))

    assert (statuses(recorder), clock.slept_s) == (["not created"], [])
    assert judged(again(recorder, ledger), port, batching(clock)).n_verdicts == N_QUERIES


def test_a_busy_provider_is_asked_again_after_the_wait_that_it_asks_for(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Nobody waits minutes for what is taken in seconds."""
    for _ in range(2):
        port.fail_next(BatchBusy("HTTP 429", asked_s=9.0), accepts=False)

    done = judged(recorder, port, batching(clock))

    assert (done.n_verdicts, clock.slept_s) == (N_QUERIES, [9.0, 9.0])
    assert (len(port.asked), statuses(recorder)) == (N_QUERIES, ["ended"])


@pytest.mark.parametrize("asked_s", [None, 3600.0])
def test_a_provider_that_stays_busy_is_left_alone(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock, asked_s: float | None
) -> None:
    """A wait of more than two minutes looks like a hang, so somebody should know."""
    for _ in range(9):
        port.fail_next(BatchBusy("HTTP 429", asked_s=asked_s), accepts=False)

    with pytest.raises(BatchRefused, match="HTTP 429"):
        judged(recorder, port, batching(clock))

    assert sum(clock.slept_s) < 200
    assert (port.asked, statuses(recorder)) == ([], ["not created"])


class Hidden(ScriptedBatchJudge):
    """A provider whose list of batches fails."""

    why: TourneyError = NotAnswering("no network")

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Fail."""
        del moment
        raise self.why


@pytest.mark.parametrize(
    ("why", "error"),
    [
        (NotAnswering("no network"), WorkInFlight),
        (ProviderError("HTTP 404"), ProviderError),
        (SpendLimitReached("HTTP 402"), SpendLimitReached),
    ],
)
def test_a_refusal_is_not_believed_where_the_batch_cannot_be_looked_for(
    recorder: Recorder, clock: Clock, why: TourneyError, error: type[TourneyError]
) -> None:
    """A gateway may refuse everything that was said after it took the order."""
    port = Hidden(prefer_tuned, now=clock.now)
    port.why = why
    port.fail_next(BatchRefused("HTTP 400"), accepts=False)

    with pytest.raises(error):
        judged(recorder, port, batching(clock, waits=False))

    assert statuses(recorder) == ["unknown"]


def test_what_the_provider_itself_refuses_is_not_looked_for(
    recorder: Recorder, clock: Clock
) -> None:
    """A stranger's running batch of the same size would make it uncertain."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    port.create([query._replace(query_key=key(query.query_key)) for query in open_now(recorder)])
    refusal = NoCredentials("the key is wrong")
    refusal.was_sent = False
    port.fail_next(refusal, accepts=False)

    with pytest.raises(NoCredentials):
        judged(recorder, port, batching(clock, waits=False))

    assert statuses(recorder) == ["not created"]


def test_the_cap_is_never_exceeded_and_what_fits_is_done(recorder: Recorder, clock: Clock) -> None:
    """It holds against the worst case of what is in flight, and against what was paid."""
    port = ScriptedBatchJudge(paid, now=clock.now)
    how = batching(clock, pricing=FlatRate(0.2))

    with pytest.raises(BudgetReached):
        judged(recorder, port, how, max_usd=0.45)

    assert len(port.asked) == 3
    assert recorder.state.spent_usd == pytest.approx(0.33)


def test_what_was_spent_before_counts_against_the_cap(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """A cap for each command would be no cap."""
    port = ScriptedBatchJudge(paid, now=clock.now)
    how = batching(clock, pricing=FlatRate(0.2))
    judged(recorder, port, how, limit=3)

    with pytest.raises(BudgetReached, match=r"\$0.3300 is spent"):
        judged(again(recorder, ledger), port, how, max_usd=0.5)


def test_the_first_of_each_rubric_goes_ahead_where_the_prefix_is_cached(
    recorder: Recorder, clock: Clock
) -> None:
    """The others then find it in the provider's cache."""
    port = ScriptedBatchJudge(prefer_tuned, now=clock.now)

    judged(recorder, port, batching(clock, prewarms=True, pricing=FlatRate(0.2)))

    sizes = [len(batch.planned.queries) for batch in recorder.state.batches.values()]
    assert sorted(sizes) == [1, 3]


def test_a_key_that_does_not_see_a_batch_in_flight_sends_nothing(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Neither a prewarm nor the rest, however often it is run: the batch is paid for."""
    how = batching(clock, prewarms=True, pricing=FlatRate(0.2))
    theirs = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, theirs, batching(clock, waits=False), limit=1)
    other = ScriptedBatchJudge(prefer_tuned, now=clock.now)

    for _ in range(3):
        with pytest.raises(BatchGone, match="if the API key is the right one"):
            judged(again(recorder, ledger), other, how)
        clock.sleep(600)

    assert other.asked == []
    assert len(again(recorder, ledger).state.own_batches) == 1


def in_flight_of_the_pilot(ledger: Ledger, clock: Clock) -> tuple[Recorder, ScriptedBatchJudge]:
    """Return a tournament and its provider, where a batch to the pilot's judge has just ended."""
    events = opened(prompts=[prompt("p1"), prompt("p2")], judges=[JUDGE, PILOT])
    recorder = record_answers(Recorder(ledger, STREAM), events)
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    task = JudgeTask(PILOT, [P1, P2], retries=1)
    with pytest.raises(WorkInFlight):
        batched(recorder, task, lambda _: port, batching(clock, waits=False))
    port.end()
    return recorder, port


def n_decided(recorder: Recorder, by: JudgeSettings) -> int:
    """Return how many pairs a judge has decided on record."""
    return sum(pair.judge == by.judge_id for pair in recorder.state.outcomes)


def test_whoever_receives_a_batch_of_another_judge_decides_its_pairs(
    ledger: Ledger, clock: Clock
) -> None:
    """The pilot's batch is received by the headline's command, and nobody comes back for it."""
    recorder, port = in_flight_of_the_pilot(ledger, clock)

    with attending_batches(recorder, print):
        judged(recorder, port, ending(port, batching(clock)))

    assert (n_decided(recorder, PILOT), n_decided(recorder, JUDGE)) == (2, 2)


def test_they_are_decided_though_the_command_ends_early(ledger: Ledger, clock: Clock) -> None:
    """Here nobody waits for the batch that it sent itself."""
    recorder, port = in_flight_of_the_pilot(ledger, clock)

    with pytest.raises(WorkInFlight), attending_batches(recorder, print):
        judged(recorder, port, batching(clock, waits=False))

    assert n_decided(recorder, PILOT) == 2


def test_they_are_decided_though_who_received_them_died(ledger: Ledger, clock: Clock) -> None:
    """By the next command, for which nothing is in flight any more."""
    recorder, port = in_flight_of_the_pilot(ledger, clock)
    receiver(recorder, lambda _: port, batching(clock)).receive_all()

    with attending_batches(again(recorder, ledger), print):
        assert n_decided(recorder, PILOT) == 0

    assert n_decided(again(recorder, ledger), PILOT) == 2


@MERGED
def test_what_a_merge_answers_between_two_batches_is_not_sent(
    recorder: Recorder, ledger: Ledger, clock: Clock, stream: StreamId
) -> None:
    """Sending thousands of queries takes a while, and what is sent is paid."""
    wanted = open_now(recorder)

    class Merging(ScriptedBatchJudge):
        """A provider that takes so long that somebody merges the other answers."""

        def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
            """Accept them after that."""
            merge_verdicts(ledger, wanted[2:], stream)
            return super().create(queries)

    port = Merging(prefer_tuned, now=clock.now)
    judged(recorder, port, batching(clock, most_queries=2))

    assert len(port.asked) == 2


def test_what_a_merge_answers_before_a_batch_is_planned_is_not_sent(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Another host of the tournament paid for it; the run goes on with the rest."""
    wanted = open_now(recorder)
    price = MeanwhileMerged(1.0, lambda: merge_verdicts(ledger, wanted[:1], STREAM))

    done = judged(recorder, port, batching(clock, pricing=price))

    assert [query.query_key for query in port.asked] == [each.query_key for each in wanted[1:]]
    assert (done.n_verdicts, done.n_reconciled) == (N_QUERIES, 2)


def test_the_total_is_what_came_and_what_is_still_asked(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """What is asked again is more to do; what has come stays counted."""
    told: list[tuple[int, int]] = []
    how = batching(clock, most_queries=3)

    judged(recorder, port, replace(how, on_progress=lambda _, *counts: told.append(counts)))

    assert told == [(3, N_QUERIES), (N_QUERIES, N_QUERIES)]


class Raced(Ledger):
    """A ledger to which a merge brings another host's plan, the moment that ours is on it."""

    theirs: tuple[Event, ...] = ()

    def append(
        self, stream: StreamId, events: Sequence[Event], *, expected_version: int | None = None
    ) -> tuple[Receipt, ...]:
        """Append the events, then what is merged."""
        receipts = super().append(stream, events, expected_version=expected_version)
        if isinstance(events[0], JudgeBatchPlanned) and self.theirs:
            theirs, self.theirs = self.theirs, ()
            super().append(stream, theirs)
        return receipts


def test_what_is_sent_is_recorded_under_the_plan_that_was_made_for_it(clock: Clock) -> None:
    """Else our batch stays unknown, and theirs would be waited for under a name that is not its."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with Raced.in_memory(now=clock.now) as ledger:
        recorder = record_answers(
            Recorder(ledger, STREAM), opened(prompts=[prompt("p1"), prompt("p2")])
        )
        plan = planned_batch(key("theirs"), number=7, by=JUDGE)
        ledger.theirs = (plan, sent(plan.batch_key))
        with pytest.raises((WorkInFlight, BatchGone)):
            judged(recorder, port, batching(clock, waits=False))

        (ours, theirs) = recorder.state.own_batches

    assert ours.submitted is not None
    assert theirs.submitted == sent(plan.batch_key)
    assert (len(ours.planned.queries), len(port.asked)) == (N_QUERIES, N_QUERIES)


def of_twenty(ledger: Ledger) -> tuple[Recorder, JudgeTask]:
    """Record both answers to twenty prompts: forty queries."""
    names = [f"p{number}" for number in range(20)]
    recorder = record_answers(Recorder(ledger, STREAM), opened(prompts=[*map(prompt, names)]))
    return recorder, JudgeTask(JUDGE, [*map(PromptId, names)], retries=1)


@pytest.mark.parametrize("most_queries", [100, 15])
def test_a_batch_without_a_readable_verdict_is_not_repeated(
    ledger: Ledger, clock: Clock, most_queries: int
) -> None:
    """It is paid for as a whole; that it will be no better the next time is seen before."""
    recorder, task = of_twenty(ledger)
    port = ScriptedBatchJudge(lambda _: "Hm.", now=clock.now)
    how = batching(clock, most_queries=most_queries)

    with pytest.raises(NothingReadable, match="16 replies in a row"):
        batched(recorder, task, lambda _: port, how)

    assert len(port.asked) == 40


def test_the_same_command_repeats_such_a_batch_once(ledger: Ledger, clock: Clock) -> None:
    """Whoever wants to go on can: the queries are open, and no batch has ended since."""
    recorder, task = of_twenty(ledger)
    port = ScriptedBatchJudge(lambda _: "Hm.", now=clock.now)
    with pytest.raises(NothingReadable):
        batched(recorder, task, lambda _: port, batching(clock))

    done = batched(recorder, task, lambda _: port, batching(clock))

    assert (done.n_open, done.n_failed, len(port.asked)) == (40, 40, 80)


def test_a_batch_of_an_earlier_command_is_heeded(ledger: Ledger, clock: Clock) -> None:
    """Under --no-wait one command sends, and the next one receives and would repeat."""
    recorder, task = of_twenty(ledger)
    port = ScriptedBatchJudge(lambda _: "Hm.", ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        batched(recorder, task, lambda _: port, batching(clock, waits=False))
    port.end()

    with pytest.raises(NothingReadable):
        batched(again(recorder, ledger), task, lambda _: port, batching(clock))

    assert len(port.asked) == 40


def test_a_few_unreadable_replies_of_a_batch_are_asked_for_again(
    ledger: Ledger, clock: Clock
) -> None:
    """Eight of forty here; the second batch has only those, and holds none."""
    recorder, task = of_twenty(ledger)
    hard = {each.asked.query_key for each in task.open_in(recorder.state)[::5]}
    port = ScriptedBatchJudge(
        lambda query: "Hm." if query.query_key in hard else "VERDICT: A", now=clock.now
    )

    done = batched(recorder, task, lambda _: port, batching(clock))

    assert (done.n_verdicts, done.n_failed, len(port.asked)) == (32, 8, 48)
