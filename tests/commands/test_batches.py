"""Judging in batches: planned, sent once, received whole, wherever the process dies."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from commands.decisions.commands import SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchGone,
    BatchRefused,
    BatchUncertain,
    NotFound,
    ProviderError,
    SpendLimitReached,
    WorkInFlight,
)
from commands.judging.batches import judge_in_batches, reconciling
from commands.judging.judge import JudgeTask, JudgingSummary
from commands.judging.receiving import forget_batch, receive_batches
from commands.judging.recovery import AnotherWorkspace, BatchOptions, Polling
from commands.ports import Answer, BatchState, NoReply, Reply, no_progress
from commands.spending.budget import BudgetReached
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.events.judging import JudgeBatchPlanned, JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.events.values import Price, Usage
from ledger.identity import Digest, StreamId
from ledger.recorded import Receipt
from ledger.store import Ledger
from projections.tournament.batches import Batch
from projections.tournament.progress import AskingRules, open_queries
from projections.tournament.settlement import account_of, settle
from projections.verdicts.queries import JudgeQuery
from tests.batches import planned, sent
from tests.builders import NOON, STREAM, judge, key, opened, prompt, verdict
from tests.commands.builders import (
    JUDGE,
    P1,
    P2,
    PowerCut,
    answered,
    open_tournament,
    prefer_tuned,
    types_of,
)
from tests.commands.flat_rate import MeanwhileMerged
from tests.support.scripted_batches import ScriptedBatchJudge

SETTLE_S = 300.0
PRICE = Price(
    input=1.0, output=5.0, cache_write_5m=1.25, cache_write_1h=2.0, cache_read=0.1, table="test"
)
PILOT = judge("pilot", model="small")
N_QUERIES = 4  # two entrants, two prompts, both orders
MERGED = pytest.mark.parametrize("stream", [StreamId("colleague"), STREAM])


@dataclass
class Clock:
    """A clock that sleeping moves on."""

    moment: datetime = NOON
    slept_s: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the time."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Let it be later."""
        self.slept_s.append(seconds)
        self.moment += timedelta(seconds=seconds)


@dataclass(frozen=True)
class FlatRate:
    """Pricing at a tenth of a dollar a query, and at worst two tenths."""

    def price_of(self, usage: Usage) -> Price:
        """Return the price."""
        del usage
        return PRICE

    def expected_usd(self, queries: Sequence[JudgeQuery]) -> float:
        """Return ten cents each."""
        return 0.1 * len(queries)

    def worst_usd(self, queries: Sequence[JudgeQuery]) -> float:
        """Return twenty cents each."""
        return 0.2 * len(queries)

    def caches(self, query: JudgeQuery) -> bool:
        """Keep every prefix."""
        del query
        return True


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands at noon."""
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Iterator[Ledger]:
    """Give a ledger in memory that records by that clock."""
    with Ledger.in_memory(now=clock.now) as ledger:
        yield ledger


@pytest.fixture
def recorder(ledger: Ledger) -> Recorder:
    """Give a tournament of two entrants and two prompts, all answered."""
    return answered(Recorder(ledger, STREAM), opened(prompts=[prompt("p1"), prompt("p2")]))


@pytest.fixture
def port(clock: Clock) -> ScriptedBatchJudge:
    """Give a provider whose batches end at once."""
    return ScriptedBatchJudge(prefer_tuned, now=clock.now)


def paid(query: JudgeQuery) -> Reply:
    """Answer for eleven cents."""
    usage = Usage(n_input=10_000, n_output=20_000)
    return Reply(query.query_key, prefer_tuned(query), "end_turn", "scripted", usage)


def batching(
    clock: Clock,
    *,
    batch_queries: int = 100,
    waits: bool = True,
    prewarm: bool = False,
    pricing: Pricing = FREE_OF_CHARGE,
    tell: Callable[[str], None] = lambda _: None,
) -> BatchOptions:
    """Return how batches are handled, by that clock."""
    rng = random.Random(0)  # noqa: S311  # no secret
    waiting = Polling(60.0, SETTLE_S, waits=waits, sleep=clock.sleep, now=clock.now, rng=rng)
    return BatchOptions(batch_queries, prewarm, waiting, lambda _: pricing, tell, no_progress)


def ending(port: ScriptedBatchJudge, how: BatchOptions) -> BatchOptions:
    """Return the same, but that sleeping lets the provider's batches end."""

    def sleep(seconds: float) -> None:
        how.polling.sleep(seconds)
        port.end()

    return replace(how, polling=replace(how.polling, sleep=sleep))


def open_now(recorder: Recorder) -> list[JudgeQuery]:
    """Return the questions that are open."""
    queries = open_queries(recorder.state, [P1, P2], JUDGE, AskingRules(0))
    return [query.asked for query in queries]


def judged(
    recorder: Recorder,
    port: ScriptedBatchJudge,
    how: BatchOptions,
    *,
    retries: int = 1,
    limit: int | None = None,
    max_usd: float | None = None,
) -> JudgingSummary:
    """Judge what is open on both prompts."""
    task = JudgeTask(
        JUDGE, [P1, P2], AskingRules(retries), how.pricing_of, max_usd=max_usd, limit=limit
    )
    return judge_in_batches(recorder, task, lambda: port, how)


def again(recorder: Recorder, ledger: Ledger) -> Recorder:
    """Return what another process makes of the ledger."""
    del recorder
    return Recorder(ledger, STREAM)


def merge_verdicts(ledger: Ledger, queries: Sequence[JudgeQuery], stream: StreamId) -> None:
    """Record what was answered elsewhere, as a merge does."""
    ledger.append(stream, [verdict(query.query_key) for query in queries])


def statuses(recorder: Recorder) -> list[str]:
    """Return where each batch is, by its number."""
    batches: list[Batch] = sorted(
        recorder.state.batches.values(), key=lambda batch: batch.planned.number
    )
    return [batch.status for batch in batches]


def test_a_batch_is_planned_sent_received_and_ended_in_this_order(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """The intent must be on the disk before money can move, and the end after the last answer."""
    n_before = len(types_of(ledger))

    done = judged(recorder, port, batching(clock))

    assert types_of(ledger)[n_before:] == [
        "JudgeBatchPlanned",
        "JudgeBatchSubmitted",
        *["JudgeQuerySubmitted"] * N_QUERIES,
        *["VerdictReceived"] * N_QUERIES,
        "JudgeBatchEnded",
        *["PairReconciled"] * 2,
    ]
    assert done == JudgingSummary(N_QUERIES, N_QUERIES, 0, 2)


def test_what_is_done_is_not_sent_again(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Resuming is running the same command again."""
    judged(recorder, port, batching(clock))

    done = judged(again(recorder, ledger), port, batching(clock))

    assert done == JudgingSummary(0, 0, 0, 0)
    assert len(port.asked) == N_QUERIES


def test_queries_are_split_into_batches_of_the_size_that_is_set(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Small batches move the progress, and end one by one."""
    judged(recorder, port, batching(clock, batch_queries=3))

    sizes = [len(batch.planned.queries) for batch in recorder.state.batches.values()]
    assert sorted(sizes) == [1, 3]


def test_nobody_waits_under_no_wait_and_the_next_command_receives(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """A laptop may sleep while the provider works."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)

    with pytest.raises(WorkInFlight, match="4 queries in 1 batch"):
        judged(recorder, port, batching(clock, waits=False))
    port.end()
    done = judged(again(recorder, ledger), port, batching(clock))

    assert (done.n_open, done.n_reconciled) == (0, 2)
    assert len(port.asked) == N_QUERIES
    assert clock.slept_s == []


def test_in_flight_queries_are_not_open(recorder: Recorder, clock: Clock) -> None:
    """Else two commands would send the same."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    for _ in range(2):
        with pytest.raises(WorkInFlight):
            judged(recorder, port, batching(clock, waits=False))

    assert len(port.asked) == N_QUERIES


def test_looking_is_repeated_with_growing_delays(recorder: Recorder, clock: Clock) -> None:
    """Asking every second for an hour would be refused; asking once an hour would be slow."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept_s) == 12:
            port.end()

    how = batching(clock)
    judged(recorder, port, replace(how, polling=replace(how.polling, sleep=sleep)))

    assert clock.slept_s[0] < 6
    assert all(54 <= delay_s <= 66 for delay_s in clock.slept_s[8:])


@pytest.mark.parametrize("accepted", [True, False])
def test_a_batch_without_an_answer_is_found_or_sent_again(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock, *, accepted: bool
) -> None:
    """The connection was cut: whether money moved shows at the provider only."""
    port.fail_next(BatchUncertain("the connection was cut"), accepts=accepted)

    done = judged(recorder, port, batching(clock))

    assert done.n_verdicts == N_QUERIES
    assert len(port.asked) == N_QUERIES
    assert statuses(recorder) == (["ended"] if accepted else ["not created", "ended"])


@pytest.mark.parametrize("accepted", [True, False])
def test_a_process_that_died_while_sending_pays_once(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock, *, accepted: bool
) -> None:
    """Killed after the intent, or after the provider accepted: the next run finds out which."""
    port.fail_next(PowerCut(), accepts=accepted)  # type: ignore[arg-type]  # not an error of ours: the process is gone
    with pytest.raises(PowerCut):
        judged(recorder, port, batching(clock))

    done = judged(again(recorder, ledger), port, batching(clock))

    assert len(port.asked) == N_QUERIES
    assert done.n_reconciled == 2


def test_a_batch_is_given_up_only_when_it_must_have_shown(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """A request on its way may be accepted a minute later."""
    port.fail_next(BatchUncertain("the connection was cut"), accepts=False)

    judged(recorder, port, batching(clock))

    assert sum(clock.slept_s) >= SETTLE_S


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
    judged(recorder, port, replace(how, polling=replace(how.polling, sleep=sleep)))

    assert statuses(recorder) == ["ended"]


def test_a_strangers_batch_of_the_same_size_is_not_taken_up(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Workspaces are shared: only the queries that results name tell whose a batch is."""
    port.create([query._replace(query_key=key(query.query_key)) for query in open_now(recorder)])
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    judged(recorder, port, batching(clock))

    (batch,) = recorder.state.batches.values()
    assert batch.submitted is not None
    assert batch.submitted.provider_batch_id == "batch_2"


def test_nothing_can_be_told_of_an_uncertain_batch_without_waiting(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """--no-wait must not send again what may be there."""
    port.fail_next(PowerCut(), accepts=False)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        judged(recorder, port, batching(clock))

    with pytest.raises(WorkInFlight, match="may be with the provider"):
        judged(again(recorder, ledger), port, batching(clock, waits=False))

    assert port.asked == []


def test_a_gold_answer_corrected_meanwhile_does_not_lose_the_batch(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """What was planned is what the ledger said then, not what the settings say now."""
    port.fail_next(PowerCut(), accepts=True)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        judged(recorder, port, batching(clock))
    second = answered(
        again(recorder, ledger),
        opened(prompts=[prompt("p1", gold="ibuprofen"), prompt("p2")], opening=2),
    )

    done = judged(second, port, batching(clock))

    assert types_of(ledger).count("VerdictReceived") == N_QUERIES + 2
    assert done.n_open == 2


def test_a_refused_batch_is_dropped_and_said(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Nothing is paid for a batch that was refused, and its queries stay open."""
    port.fail_next(BatchRefused("too large"), accepts=False)
    with pytest.raises(BatchRefused, match="too large"):
        judged(recorder, port, batching(clock))

    assert statuses(recorder) == ["not created"]
    assert judged(again(recorder, ledger), port, batching(clock)).n_verdicts == N_QUERIES


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

    done = judged(recorder, port, ending(port, batching(clock, batch_queries=1)), retries=0)

    assert done.n_verdicts == N_QUERIES
    assert statuses(recorder).count("ended") == N_QUERIES


def test_a_spend_limit_stops_at_once(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """Asking again and again would not raise it."""
    port.fail_next(SpendLimitReached("monthly limit"), accepts=False)

    with pytest.raises(SpendLimitReached):
        judged(recorder, port, batching(clock, batch_queries=1))

    assert (port.asked, clock.slept_s) == ([], [])


@pytest.mark.parametrize("reason", ["errored", "expired", "canceled"])
def test_what_was_not_answered_is_asked_again_so_many_times(
    recorder: Recorder, ledger: Ledger, clock: Clock, reason: str
) -> None:
    """A failure that passes is worth another try; one that does not must come to an end."""
    port = ScriptedBatchJudge(lambda query: NoReply(query.query_key, reason, "no"), now=clock.now)  # type: ignore[arg-type]  # as parametrised

    done = judged(recorder, port, batching(clock), retries=2)

    assert len(port.asked) == 3 * N_QUERIES
    assert (done.n_verdicts, done.n_failed) == (0, N_QUERIES)
    assert judged(again(recorder, ledger), port, batching(clock), retries=0).n_open == N_QUERIES


def test_what_the_provider_rejects_is_not_asked_again(recorder: Recorder, clock: Clock) -> None:
    """An invalid request stays invalid."""
    port = ScriptedBatchJudge(lambda each: NoReply(each.query_key, "rejected", "no"), now=clock.now)

    judged(recorder, port, batching(clock), retries=2)

    assert len(port.asked) == N_QUERIES


def test_an_unreadable_reply_is_asked_again_and_kept(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """It was paid for: it stays on record, whatever the next one says."""
    seen: set[Digest] = set()

    def second_time(query: JudgeQuery) -> str:
        is_new = query.query_key not in seen
        seen.add(query.query_key)
        return "Both are fine." if is_new else prefer_tuned(query)

    port = ScriptedBatchJudge(second_time, now=clock.now)
    done = judged(recorder, port, batching(clock))

    failures = [each.event for each in ledger.read() if isinstance(each.event, JudgeQueryFailed)]
    assert [each.reply for each in failures] == ["Both are fine."] * N_QUERIES
    assert done.n_verdicts == N_QUERIES


class HalfRead(ScriptedBatchJudge):
    """A provider whose results end early, as long as it is so told."""

    is_cut = True

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield half of the results, or all."""
        answers = list(super().results(provider_batch_id))
        yield from answers[: len(answers) // 2] if self.is_cut else answers


def test_results_that_stay_incomplete_are_an_error_and_the_batch_stays_open(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Later they may be whole; until then nothing of them is asked again."""
    port = HalfRead(prefer_tuned, now=clock.now)
    with pytest.raises(ProviderError, match="no result for 2 of its 4"):
        judged(recorder, port, batching(clock))
    port.is_cut = False

    judged(again(recorder, ledger), port, batching(clock))

    assert statuses(recorder) == ["in flight"]
    assert statuses(again(recorder, ledger)) == ["ended"]
    assert len(port.asked) == N_QUERIES


def test_lost_results_are_said_and_asked_again(recorder: Recorder, clock: Clock) -> None:
    """Kept 29 days and no longer: paying again is for whoever runs the next command."""
    told: list[str] = []
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, port, batching(clock, waits=False))
    port.end()
    port.lose_results("batch_1")

    done = judged(recorder, port, ending(port, batching(clock, tell=told.append)))

    assert any("gone" in line for line in told)
    assert (done.n_open, done.n_reconciled) == (N_QUERIES, 2)


def test_the_cap_is_never_exceeded_and_what_fits_is_done(recorder: Recorder, clock: Clock) -> None:
    """It holds against the worst case of what is in flight, and against what was paid."""
    port = ScriptedBatchJudge(paid, now=clock.now)
    how = batching(clock, pricing=FlatRate())

    with pytest.raises(BudgetReached):
        judged(recorder, port, how, max_usd=0.45)

    assert len(port.asked) == 3
    assert recorder.state.spent_usd == pytest.approx(0.33)


def test_what_was_spent_before_counts_against_the_cap(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """A cap for each command would be no cap."""
    port = ScriptedBatchJudge(paid, now=clock.now)
    how = batching(clock, pricing=FlatRate())
    judged(recorder, port, how, limit=3)

    with pytest.raises(BudgetReached, match=r"\$0.3300 is spent"):
        judged(again(recorder, ledger), port, how, max_usd=0.5)


def test_the_first_of_each_rubric_goes_ahead_where_the_prefix_is_cached(
    recorder: Recorder, clock: Clock
) -> None:
    """The others then find it in the provider's cache."""
    port = ScriptedBatchJudge(prefer_tuned, now=clock.now)

    judged(recorder, port, batching(clock, prewarm=True, pricing=FlatRate()))

    sizes = [len(batch.planned.queries) for batch in recorder.state.batches.values()]
    assert sorted(sizes) == [1, 3]


def test_receiving_sends_nothing(recorder: Recorder, clock: Clock) -> None:
    """`tourney batch wait` is free of new cost."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, port, batching(clock, waits=False), limit=2)
    port.end()

    receive_batches(recorder, port, batching(clock))

    assert recorder.state.open_batches == ()
    assert len(port.asked) == 2


def test_the_account_adds_up_after_every_kind_of_answer(recorder: Recorder, clock: Clock) -> None:
    """Planned is the sum of what became of it."""
    kinds: list[Answer | str] = ["VERDICT: A", "", "no verdict"]

    def each_kind(query: JudgeQuery) -> Answer | str:
        return kinds[int(query.query_key, 16) % 3]

    judged(recorder, ScriptedBatchJudge(each_kind, now=clock.now), batching(clock))
    account = account_of(settle(recorder.state, [P1, P2], JUDGE))

    parts = account.decided + account.tie + account.inconsistent + account.n_failed
    assert account.planned == parts + account.pending == 2


def in_flight_of_the_pilot(ledger: Ledger, clock: Clock) -> tuple[Recorder, ScriptedBatchJudge]:
    """Return a tournament and its provider, where a batch to the pilot's judge has just ended."""
    events = opened(prompts=[prompt("p1"), prompt("p2")], judges=[JUDGE, PILOT])
    recorder = answered(Recorder(ledger, STREAM), events)
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    task = JudgeTask(PILOT, [P1, P2], AskingRules(1))
    with pytest.raises(WorkInFlight):
        judge_in_batches(recorder, task, lambda: port, batching(clock, waits=False))
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

    with reconciling(recorder, AskingRules(1)):
        judged(recorder, port, ending(port, batching(clock)))

    assert (n_decided(recorder, PILOT), n_decided(recorder, JUDGE)) == (2, 2)


def test_they_are_decided_though_the_command_ends_early(ledger: Ledger, clock: Clock) -> None:
    """Here nobody waits for the batch that it sent itself."""
    recorder, port = in_flight_of_the_pilot(ledger, clock)

    with pytest.raises(WorkInFlight), reconciling(recorder, AskingRules(1)):
        judged(recorder, port, batching(clock, waits=False))

    assert n_decided(recorder, PILOT) == 2


def test_they_are_decided_though_who_received_them_died(ledger: Ledger, clock: Clock) -> None:
    """By the next command, for which nothing is in flight any more."""
    recorder, port = in_flight_of_the_pilot(ledger, clock)
    receive_batches(recorder, port, batching(clock))

    with reconciling(again(recorder, ledger), AskingRules(1)):
        assert n_decided(recorder, PILOT) == 0

    assert n_decided(again(recorder, ledger), PILOT) == 2


def test_a_batch_that_the_provider_deleted_can_be_given_up(
    recorder: Recorder, clock: Clock
) -> None:
    """Else it would be waited for for ever."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, port, batching(clock, waits=False))

    port.delete("batch_1")
    forget_batch(recorder, port, "batch_1")

    assert statuses(recorder) == ["ended"]
    assert len(open_now(recorder)) == N_QUERIES


def test_a_batch_that_is_not_in_flight_or_alive_cannot_be_given_up(
    recorder: Recorder, clock: Clock
) -> None:
    """A typing error must not write off what was paid for."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, port, batching(clock, waits=False))

    with pytest.raises(NotFound, match="batch_9"):
        forget_batch(recorder, port, "batch_9")
    with pytest.raises(NotFound, match="can still be received"):
        forget_batch(recorder, port, "batch_1")


def test_a_deleted_batch_does_not_keep_the_others_from_being_received(
    recorder: Recorder, clock: Clock
) -> None:
    """And the error says how it is given up."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, port, batching(clock, waits=False, batch_queries=2))
    port.end()
    port.delete("batch_1")

    with pytest.raises(BatchGone, match="forget batch_1"):
        judged(recorder, port, batching(clock))

    assert statuses(recorder) == ["in flight", "ended"]


def test_another_workspaces_key_gives_nothing_up(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """It lists no batch of ours, which does not mean that there is none."""
    judged(recorder, port, batching(clock), limit=2)
    port.fail_next(PowerCut(), accepts=True)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        judged(again(recorder, ledger), port, batching(clock))
    stranger = ScriptedBatchJudge(prefer_tuned, now=clock.now)

    with pytest.raises(AnotherWorkspace, match="batch_1"):
        judged(again(recorder, ledger), stranger, batching(clock))

    assert stranger.asked == []


def test_a_clock_that_was_ahead_does_not_hide_a_batch(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """A ledger's own time never goes back, so it may be hours before everybody else's."""
    clock.moment += timedelta(hours=3)
    recorder.record(open_tournament(opened(prompts=[prompt("p1"), prompt("p2")], opening=2)))
    clock.moment -= timedelta(hours=3)
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    judged(recorder, port, batching(clock))

    assert len(port.asked) == N_QUERIES


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(days=2)])
def test_a_clock_that_was_ahead_at_the_plan_is_paid_once(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock, ahead: timedelta
) -> None:
    """The provider dates the batch by its own clock, before the plan; and nobody waits for days."""
    ours = Clock(NOON + ahead)
    port.fail_next(PowerCut(), accepts=True)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        judged(recorder, port, batching(ours))

    done = judged(again(recorder, ledger), port, batching(clock))

    assert (len(port.asked), done.n_reconciled) == (N_QUERIES, 2)
    assert clock.slept_s == []


def test_a_clock_that_stays_ahead_does_not_hide_a_batch(
    recorder: Recorder, port: ScriptedBatchJudge
) -> None:
    """By it, the batch was created long before it was planned."""
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    judged(recorder, port, batching(Clock(NOON + timedelta(hours=3))))

    assert len(port.asked) == N_QUERIES


def test_a_plan_from_the_future_is_given_up_as_soon_as_any_other(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """The clock was set back by two days; whoever waited for them would wait for nothing."""
    port.fail_next(PowerCut(), accepts=False)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        judged(recorder, port, batching(Clock(NOON + timedelta(days=2))))

    judged(again(recorder, ledger), port, batching(clock))

    assert clock.slept_s == [SETTLE_S]


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
    port.create([query._replace(query_key=key(query.query_key)) for query in open_now(recorder)])
    clock.sleep(1.0)
    port.fail_next(BatchUncertain("the connection was cut"), accepts=True)

    judged(recorder, port, batching(clock))

    assert (statuses(recorder), clock.slept_s) == (["ended"], [1.0])


@MERGED
def test_a_merged_verdict_does_not_keep_a_batch_from_being_received(
    recorder: Recorder,
    ledger: Ledger,
    port: ScriptedBatchJudge,
    clock: Clock,
    stream: StreamId,
) -> None:
    """It came while nobody knew if the batch was sent: what was paid for the others is here."""
    queries = open_now(recorder)
    port.fail_next(PowerCut(), accepts=True)  # type: ignore[arg-type]  # as above
    with pytest.raises(PowerCut):
        judged(recorder, port, batching(clock))
    merge_verdicts(ledger, queries[:2], stream)

    done = judged(again(recorder, ledger), port, batching(clock))

    assert (done.n_open, done.n_reconciled) == (0, 2)
    assert statuses(again(recorder, ledger)) == ["ended"]
    assert len(port.asked) == N_QUERIES


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
    judged(recorder, port, batching(clock, batch_queries=2))

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


def merge_batch(ledger: Ledger, port: ScriptedBatchJudge) -> Digest:
    """Record a batch that another host of the tournament sent, as a merge does."""
    recorder = Recorder(ledger, STREAM)
    queries = open_queries(recorder.state, [P1, P2], JUDGE, AskingRules(0))
    asked = [query.asked for query in queries]
    plan = planned(*(question.query_key for question in asked), number=7, by=JUDGE)
    ledger.append(STREAM, [plan])
    recorder = Recorder(ledger, STREAM)
    recorder.record(SubmitBatch(plan.batch_key, port.create(asked), queries))
    return plan.batch_key


def test_a_batch_that_is_merged_in_is_counted_while_it_is_received(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """A listener divides by the total: nobody sent these, and all of them come."""
    merged: list[Digest] = []
    told: list[tuple[int, int]] = []

    def merge() -> None:
        if not merged:
            merged.append(merge_batch(ledger, port))

    how = batching(clock, pricing=MeanwhileMerged(0.0, merge))
    listening = replace(how, on_progress=lambda _, done, total: told.append((done, total)))
    judged(recorder, port, listening, max_usd=5.0)

    assert told
    assert all(0 < done <= total for done, total in told)
    assert told[-1] == (N_QUERIES, N_QUERIES)
    assert len(port.asked) == N_QUERIES


def test_a_plan_that_is_merged_in_unsent_is_settled_before_all_is_done(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Another host died before it sent it; nothing of ours waits for it, and nothing fails."""
    theirs = planned(key("theirs"), number=7, by=JUDGE)

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


def test_the_total_is_what_came_and_what_is_still_asked(
    recorder: Recorder, port: ScriptedBatchJudge, clock: Clock
) -> None:
    """What is asked again is more to do; what has come stays counted."""
    told: list[tuple[int, int]] = []
    how = batching(clock, batch_queries=3)

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
        recorder = answered(Recorder(ledger, STREAM), opened(prompts=[prompt("p1"), prompt("p2")]))
        plan = planned(key("theirs"), number=7, by=JUDGE)
        ledger.theirs = (plan, sent(plan.batch_key))
        with pytest.raises((WorkInFlight, BatchGone)):
            judged(recorder, port, batching(clock, waits=False))

        (ours, theirs) = recorder.state.own_batches

    assert ours.submitted is not None
    assert theirs.submitted == sent(plan.batch_key)
    assert (len(ours.planned.queries), len(port.asked)) == (N_QUERIES, N_QUERIES)


def test_what_failed_in_an_earlier_commands_batch_is_asked_again(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """The rerun ends complete."""
    seen: set[Digest] = set()

    def second_time(query: JudgeQuery) -> Answer | str:
        is_new = query.query_key not in seen
        seen.add(query.query_key)
        return NoReply(query.query_key, "errored", "busy") if is_new else prefer_tuned(query)

    port = ScriptedBatchJudge(second_time, ends_at_once=False, now=clock.now)
    with pytest.raises(WorkInFlight):
        judged(recorder, port, batching(clock, waits=False))

    done = judged(again(recorder, ledger), port, ending(port, batching(clock)))

    assert done == JudgingSummary(N_QUERIES, N_QUERIES, 0, 2)
