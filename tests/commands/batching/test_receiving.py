"""What comes of batches: replies, rejections, and what is asked again."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from commands.decisions.commands import SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchGone,
    BatchRefused,
    NotAnswering,
    NotFound,
    ProviderError,
    ResultsLost,
    WorkInFlight,
)
from commands.judging.judge import JudgeTask, JudgingSummary
from commands.ports import Answer, BatchState, NoReply, Reply
from ledger.identity import Digest, StreamId
from ledger.store import Ledger
from projections.tournament.remaining import open_queries
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.batches import planned_batch
from tests.support.builders.batching import (
    MERGED,
    N_QUERIES,
    again,
    batched,
    batching,
    ending,
    forget,
    judged,
    killed_sending,
    left_in_flight,
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


def test_what_the_provider_rejects_among_others_is_not_asked_again(
    recorder: Recorder, clock: Clock
) -> None:
    """An invalid request stays invalid."""
    turns = count()
    port = ScriptedBatchJudge(
        lambda each: NoReply(each.query_key, "rejected", "no") if not next(turns) else "VERDICT: A",
        now=clock.now,
    )

    judged(recorder, port, batching(clock), retries=2)

    assert len(port.asked) == N_QUERIES
    assert {each.reason for each in recorder.state.query_failures.values()} == {"rejected"}


def test_an_error_is_told_of_the_batch_that_has_it(recorder: Recorder, clock: Clock) -> None:
    """Said of the next one, too, it looks as if trying again had failed."""
    turns = count()
    port = ScriptedBatchJudge(
        lambda each: (
            NoReply(each.query_key, "errored", "busy") if not next(turns) else "VERDICT: A"
        ),
        now=clock.now,
    )
    told: list[str] = []

    judged(recorder, port, batching(clock, tell=told.append), retries=1)

    ended = [line for line in told if " ended: " in line]
    assert len(ended) == 2
    assert told.count("the last error: busy") == 1
    assert told.index("the last error: busy") < told.index(ended[0])


@pytest.mark.parametrize(
    "answer",
    [NoReply(key("any"), "rejected", "no"), NoReply(key("any"), "errored", "no", then="stop")],
    ids=["an account's limit", "a misspelt model"],
)
def test_a_batch_that_fails_whole_ends_the_run_and_burns_no_query(
    recorder: Recorder, ledger: Ledger, clock: Clock, answer: NoReply
) -> None:
    """A limit comes as an invalid request, and is lifted tomorrow."""
    port = ScriptedBatchJudge(lambda each: replace(answer, query_key=each.query_key), now=clock.now)

    with pytest.raises(ProviderError, match="not because of their content: no"):
        judged(recorder, port, batching(clock), retries=2)
    tomorrow = ScriptedBatchJudge(prefer_tuned, now=clock.now)
    done = judged(again(recorder, ledger), tomorrow, batching(clock), retries=2)

    assert len(port.asked) == N_QUERIES
    assert (done.n_open, done.n_verdicts) == (N_QUERIES, N_QUERIES)


class Retold(ScriptedBatchJudge):
    """A provider that tells other results than it has, by the number of the download."""

    def __init__(
        self,
        retell: Callable[[list[Answer], int], list[Answer]],
        clock: Clock,
        *,
        ends_at_once: bool = True,
    ) -> None:
        """Take what becomes of the results."""
        super().__init__(paid, ends_at_once=ends_at_once, now=clock.now)
        self._retell, self.n_downloads = retell, 0

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield what is left of the results."""
        self.n_downloads += 1
        yield from self._retell(list(super().results(provider_batch_id)), self.n_downloads)


def test_results_that_stay_missing_are_waited_for_until_somebody_gives_them_up(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """They were paid for: another batch would pay again, so no command sends one by itself."""
    told: list[str] = []
    port = Retold(lambda answers, _: answers[:3], clock)
    how = batching(clock, waits=False, pricing=FlatRate(0.2), tell=told.append)

    for _ in range(5):
        with pytest.raises(WorkInFlight):
            judged(again(recorder, ledger), port, how, retries=2)
    forget(again(recorder, ledger), port, "batch_1")

    state = again(recorder, ledger).state
    (failure,) = state.query_failures.values()
    assert (len(state.verdicts), len(port.asked)) == (3, N_QUERIES)
    assert failure.fate == "perhaps billed"
    assert failure.worst_usd == pytest.approx(0.2)
    assert told[-1] == (
        "the provider does not answer: 3 of 4 results of batch batch_1 can be read until now;"
        " `tourney batch forget batch_1` gives up the others, which may have been billed"
    )
    whole = Retold(lambda answers, _: answers, clock)
    assert judged(again(recorder, ledger), whole, how).n_verdicts == 1


def test_results_that_are_there_are_received_before_a_batch_is_given_up(
    recorder: Recorder, clock: Clock
) -> None:
    """What was paid for and can be had is not thrown away by a typing error."""
    port = Retold(lambda answers, _: answers[:3], clock, ends_at_once=False)
    left_in_flight(recorder, port, batching(clock, waits=False))
    port.end()

    with pytest.raises(NotFound, match="3 results of batch_1 can still be received"):
        forget(recorder, port, "batch_1")

    assert statuses(recorder) == ["in flight"]


class Cut(ScriptedBatchJudge):
    """A provider whose downloads break off after two results, until they are mended."""

    is_cut = True

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield two results, then fail."""
        for n, answer in enumerate(super().results(provider_batch_id)):
            if self.is_cut and n == 2:
                raise NotAnswering("the results broke off")
            yield answer


def test_results_before_a_break_are_recorded_and_the_others_can_be_given_up(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """They were paid for; a batch that neither can be received nor given up is stuck for good."""
    port = Cut(prefer_tuned, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False))
    n_received = len(recorder.state.verdicts)

    forget(again(recorder, ledger), port, "batch_1")

    state = again(recorder, ledger).state
    assert (n_received, len(state.verdicts), len(state.query_failures)) == (2, 2, 2)


def test_a_batch_that_broke_off_is_not_blamed_on_the_next_one(
    recorder: Recorder, clock: Clock
) -> None:
    """Else an error of the account is looked for where there was none."""

    class Suspended(Cut):
        """A provider that blames the account for a result of the first batch, then breaks off."""

        def results(self, provider_batch_id: str) -> Iterator[Answer]:
            """Blame the account."""
            answers = super().results(provider_batch_id)
            if provider_batch_id == "batch_1":
                yield NoReply(next(answers).query_key, "errored", "suspended", then="stop")
                raise NotAnswering("the results broke off")
            yield from answers

    told: list[str] = []
    port = Suspended(prefer_tuned, ends_at_once=False, now=clock.now)
    how = replace(batching(clock, waits=False, tell=told.append), most_queries=2)
    left_in_flight(recorder, port, how)
    port.end()

    with pytest.raises(WorkInFlight, match="2 requests in 1 batch"):
        judged(recorder, port, how)

    assert "the last error: suspended" not in told


def test_a_batch_whose_results_are_all_recorded_is_closed_by_waiting(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """The process died before the end was recorded: there is nothing to give up."""
    port = Cut(prefer_tuned, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False))
    unread = [each for each in port.asked if not recorder.state.is_answered(each.query_key)]
    merge_verdicts(ledger, unread, STREAM)
    port.is_cut = False

    with pytest.raises(NotFound, match=r"every result of batch_1 is recorded; .* closes it"):
        forget(again(recorder, ledger), port, "batch_1")


def test_a_provider_that_counts_fewer_results_than_queries_has_no_more(
    recorder: Recorder, clock: Clock
) -> None:
    """It may have billed the others all the same, so only another command sends them again."""
    told: list[str] = []

    class Lossy(Retold):
        """A provider that lost a query, and knows it."""

        def retrieve(self, provider_batch_id: str) -> BatchState:
            """Count the results."""
            return replace(super().retrieve(provider_batch_id), n_results=3)

    port = Lossy(lambda answers, n: answers[: 2 if n == 1 else 3], clock)

    done = judged(
        recorder, port, batching(clock, pricing=FlatRate(0.2), tell=told.append), retries=2
    )

    (failure,) = recorder.state.query_failures.values()
    assert (failure.reason, failure.fate) == ("errored", "perhaps billed")
    assert (done.n_verdicts, done.n_failed, len(port.asked)) == (3, 1, N_QUERIES)
    assert (statuses(recorder), port.n_downloads) == (["ended"], 2)
    assert (
        "batch batch_1 has no result for 1 of its 4 requests: they may have been billed, and"
        " another command sends them again"
    ) in told


def test_rejections_are_not_final_where_nobody_knows_if_all_were_rejected(
    recorder: Recorder, clock: Clock
) -> None:
    """An account's limit comes as an invalid request; without counts the queries stay open."""
    port = ScriptedBatchJudge(lambda each: NoReply(each.query_key, "rejected", "no"), now=clock.now)
    port.counts = False

    judged(recorder, port, batching(clock), retries=0)

    assert {each.reason for each in recorder.state.query_failures.values()} == {"errored"}


def test_results_too_many_are_told_and_left_out(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """A stranger's, and a second one for a query; the first one counts."""
    stranger = Reply(key("stranger"), "VERDICT: A", "end_turn", "scripted")
    told: list[str] = []

    def retell(answers: list[Answer], _: int) -> list[Answer]:
        second = NoReply(answers[0].query_key, "rejected", "no")
        return [*answers[:2], stranger, second, *answers[2:]]

    done = judged(recorder, Retold(retell, clock), batching(clock, tell=told.append))

    assert (done.n_verdicts, done.n_failed) == (N_QUERIES, 0)
    assert "JudgeQueryFailed" not in types_of(ledger)
    assert (
        "batch batch_1 has 2 results too many, for requests of other batches or for one request"
        " twice; they are ignored"
    ) in told
    assert statuses(recorder) == ["ended"]


def test_lost_results_are_said_and_left_to_the_user(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """Kept 29 days and no longer: they were billed, and nobody pays again without being told."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False))
    port.end()
    port.lose_results("batch_1")
    how = ending(port, batching(clock))

    for _ in range(2):
        with pytest.raises(ResultsLost, match="`tourney batch forget batch_1` reopens"):
            judged(recorder, port, how)
    n_asked = len(port.asked)
    forget(recorder, port, "batch_1")
    fates = {each.fate for each in recorder.state.query_failures.values()}
    done = judged(again(recorder, ledger), port, how)

    assert (n_asked, fates) == (N_QUERIES, {"perhaps billed"})
    assert (done.n_verdicts, done.n_reconciled) == (N_QUERIES, 2)


def test_receiving_sends_nothing(recorder: Recorder, clock: Clock) -> None:
    """`tourney batch wait` is free of new cost."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False), limit=2)
    port.end()

    receiver(recorder, lambda _: port, batching(clock)).receive_all()

    assert recorder.state.open_batches == ()
    assert len(port.asked) == 2


def test_a_deleted_batch_does_not_keep_the_others_from_being_received(
    recorder: Recorder, clock: Clock
) -> None:
    """And the error says how it is given up."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    left_in_flight(recorder, port, batching(clock, waits=False, most_queries=2))
    port.end()
    port.delete("batch_1")

    with pytest.raises(BatchGone, match="forget batch_1"):
        judged(recorder, port, batching(clock))

    assert statuses(recorder) == ["in flight", "ended"]


@MERGED
def test_a_merged_verdict_does_not_keep_a_batch_from_being_received(
    recorder: Recorder, ledger: Ledger, port: ScriptedBatchJudge, clock: Clock, stream: StreamId
) -> None:
    """It came while nobody knew if the batch was sent: what was paid for the others is here."""
    queries = open_now(recorder)
    killed_sending(recorder, port, batching(clock), accepts=True)
    merge_verdicts(ledger, queries[:2], stream)

    done = judged(again(recorder, ledger), port, batching(clock))

    assert (done.n_open, done.n_reconciled) == (0, 2)
    assert statuses(again(recorder, ledger)) == ["ended"]
    assert len(port.asked) == N_QUERIES


def merge_batch(ledger: Ledger, port: ScriptedBatchJudge) -> Digest:
    """Record a batch that another host of the tournament sent, as a merge does."""
    recorder = Recorder(ledger, STREAM)
    queries = open_queries(recorder.state, [P1, P2], JUDGE, retries=0)
    asked = [query.asked for query in queries]
    plan = planned_batch(*(question.query_key for question in asked), number=7, by=JUDGE)
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
    left_in_flight(recorder, port, batching(clock, waits=False))

    done = judged(again(recorder, ledger), port, ending(port, batching(clock)))

    assert done == JudgingSummary(N_QUERIES, N_QUERIES, 0, 2)


def test_each_batch_is_received_where_it_was_sent(ledger: Ledger, clock: Clock) -> None:
    """Another maker knows none of its name; taken for lost, it would be paid for and given up."""
    judges = [JUDGE, judge("gpt", provider="openai-batch", model="gpt")]
    bank = [prompt("p1"), prompt("p2")]
    recorder = record_answers(Recorder(ledger, STREAM), opened(prompts=bank, judges=judges))
    ports = {
        each: ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now) for each in judges
    }
    for each in judges:
        task = JudgeTask(each, [P1, P2], retries=1)
        with pytest.raises(WorkInFlight):
            batched(recorder, task, ports.__getitem__, batching(clock, waits=False, most_queries=3))
    for port in ports.values():
        port.end()

    receiver(recorder, ports.__getitem__, batching(clock)).receive_all()

    assert recorder.state.open_batches == ()
    assert types_of(ledger).count("VerdictReceived") == 2 * N_QUERIES


def test_a_batch_that_is_invalid_stops_the_command_and_costs_no_query_its_turn(
    recorder: Recorder, ledger: Ledger, clock: Clock
) -> None:
    """A misspelt model would be found invalid again, batch after batch."""
    port = ScriptedBatchJudge(prefer_tuned, ends_at_once=False, now=clock.now)
    how = batching(clock)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        port.find_invalid("model_not_found: no such model")

    with pytest.raises(BatchRefused, match="is not billed: model_not_found: no such model"):
        judged(recorder, port, replace(how, sleep=sleep))

    assert statuses(recorder) == ["ended"]
    assert len(port.asked) == N_QUERIES
    done = judged(again(recorder, ledger), port, ending(port, batching(clock)))
    assert done.n_verdicts == N_QUERIES
