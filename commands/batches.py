"""Use case: judge in batches that go on without this process, and never pay twice for one.

A plan is committed before a batch is sent, and a batch is sent at most once. What is with the
provider is known from the ledger or found there (commands/lost_batches.py), so the same command
run again goes on wherever the last one died.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from commands.budget import BudgetReached
from commands.command import DropBatch, EndBatch, PlanBatch, SubmitBatch
from commands.errors import (
    BatchRefused,
    BatchUncertain,
    NoCredentials,
    NotFound,
    ProviderError,
    Refused,
    ResultsLost,
    SpendLimitReached,
    WorkInFlight,
)
from commands.judge import Judged, JudgeTask, affordable, open_now, received, reconcile_open
from commands.lost_batches import settle_uncertain
from commands.portions import first_of_each_rubric, portion
from commands.ports import Answer, BatchJudge, BatchState
from commands.pricing import Pricing
from commands.progress import OnProgress
from commands.recorder import Recorder
from commands.waiting import Waiting
from ledger.events.batches import JudgeBatchSubmitted
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.batches import Batch
from projections.progress import OpenQuery, reopened

Stop: TypeAlias = BudgetReached | BatchRefused

_GROUP: Final = 100  # answers that one transaction records; they can be read again until then


@dataclass(frozen=True)
class Batching:
    """How batches are made, waited for, and told of."""

    batch_queries: int  # in one batch, at most
    prewarm: bool
    waiting: Waiting
    pricing_of: Callable[[JudgeSettings], Pricing]
    tell: Callable[[str], None]
    on_progress: OnProgress


def judge_in_batches(
    recorder: Recorder, task: JudgeTask, make_port: Callable[[], BatchJudge], batching: Batching
) -> Judged:
    """Send what is open, receive what is in flight, until neither is left; then reconcile.

    Raises:
        WorkInFlight: Nobody waits for the batches; they go on.
        BudgetReached: What is left to ask might cost more than the cap; the rest is done.
        ProviderError: The provider cannot be asked; what was recorded is kept.
    """
    if recorder.state.open_batches:
        settle_all(recorder, make_port(), batching)
    try:
        n_open, chosen = _judge(recorder, task, make_port, batching)
    except (WorkInFlight, Refused, ProviderError):
        reconcile_open(recorder, task)
        raise
    n_reconciled = reconcile_open(recorder, task)
    n_verdicts = sum(key in recorder.state.verdicts for key in chosen)
    return Judged(n_open, n_verdicts, len(chosen) - n_verdicts, n_reconciled)


def _judge(
    recorder: Recorder, task: JudgeTask, make_port: Callable[[], BatchJudge], batching: Batching
) -> tuple[int, Sequence[Digest]]:
    """Ask, and return how many queries were open, and which were chosen: their texts are let go."""
    queries = open_now(recorder, task)
    chosen = queries[: task.limit]
    if chosen or recorder.state.open_batches:
        _Work(recorder, make_port(), batching).judge(task, chosen)
    return len(queries), [query.asked.query_key for query in chosen]


def receive_batches(recorder: Recorder, port: BatchJudge, batching: Batching) -> None:
    """Settle what is uncertain and receive what is in flight; send nothing.

    Raises:
        WorkInFlight: Nobody waits for them.
        ProviderError: The provider cannot be asked.
    """
    settle_all(recorder, port, batching)
    _Work(recorder, port, batching).receive_all()


def forget(recorder: Recorder, provider_batch_id: str) -> None:
    """Give up a batch that its provider knows no more; what it asked is open again.

    Raises:
        NotFound: No batch of that name is in flight.
    """
    for batch in recorder.state.open_batches:
        if batch.submitted and batch.submitted.provider_batch_id == provider_batch_id:
            created_at, expires_at = batch.submitted.created_at, batch.submitted.expires_at
            n_queries = len(batch.planned.queries)
            gone = BatchState(
                provider_batch_id, created_at, expires_at, has_ended=True, n_queries=n_queries
            )
            recorder.record(EndBatch(batch.planned.batch_key, gone))
            return
    raise NotFound(f"no batch named {provider_batch_id!r} is in flight; see `tourney batch list`")


def settle_all(recorder: Recorder, port: BatchJudge, how: Batching) -> None:
    """Find out what became of the batches that were planned, and perhaps sent.

    Raises:
        WorkInFlight: It cannot be told yet, and nobody waits.
    """
    for batch in recorder.state.open_batches:
        if batch.status == "unknown":
            settle_uncertain(recorder, port, batch, how.waiting, how.tell)


class _Work:
    """One tournament's batches at one provider."""

    def __init__(self, recorder: Recorder, port: BatchJudge, batching: Batching) -> None:
        self._recorder, self._port, self._how = recorder, port, batching
        self._n_sent: Counter[Digest] = Counter()  # by this process
        self._n_received = 0
        self._n_expected = sum(len(batch.planned.queries) for batch in recorder.state.open_batches)

    def judge(self, task: JudgeTask, chosen: Sequence[OpenQuery]) -> None:
        """Go round until the chosen queries are answered, or cannot be."""
        if self._how.prewarm and self._how.waiting.waits and not self._recorder.state.open_batches:
            self._prewarm(task, chosen)
        while True:
            stopped_by = self._send_all(task, chosen)
            if self._recorder.state.open_batches:
                self.receive_some()
            elif stopped_by is not None:
                raise stopped_by
            elif not self._sendable(task, chosen):
                return

    def receive_all(self) -> None:
        """Receive until nothing is in flight."""
        while self._recorder.state.open_batches:
            self.receive_some()

    def receive_some(self) -> None:
        """Wait for a batch to end, and receive each that has.

        Raises:
            WorkInFlight: Nobody waits.
        """
        for delay_s in self._how.waiting.delays_s():
            ended = [(batch, state) for batch, state in self._looked_at() if state.has_ended]
            for batch, state in ended:
                self._receive(batch, state)
            if ended:
                return
            if not self._how.waiting.waits:
                raise WorkInFlight(self._in_flight())
            self._how.waiting.sleep(delay_s)

    def _looked_at(self) -> Iterator[tuple[Batch, BatchState]]:
        for batch in self._recorder.state.open_batches:
            yield batch, self._port.look(_submitted(batch).provider_batch_id)

    def _in_flight(self) -> str:
        batches = self._recorder.state.open_batches
        n_queries = sum(len(batch.planned.queries) for batch in batches)
        return (
            f"{len(batches)} batches with {n_queries} queries are with the provider;"
            " `tourney batch wait` receives them"
        )

    def _prewarm(self, task: JudgeTask, chosen: Sequence[OpenQuery]) -> None:
        """Let the provider cache each rubric's prefix before all the others ask for it."""
        queries = self._sendable(task, chosen)
        firsts = first_of_each_rubric(queries)
        if len(queries) > 2 * len(firsts) and task.pricing.caches(queries[0].asked):
            self._send(task, firsts)
            self.receive_all()

    def _send_all(self, task: JudgeTask, chosen: Sequence[OpenQuery]) -> Stop | None:
        """Send what may be sent, and return what stopped it; more may be when a batch has ended."""
        remaining = self._sendable(task, chosen)
        while remaining:
            try:
                n_sent = self._send(
                    task, portion(remaining, self._how.batch_queries, self._port.n_bytes)
                )
            except (BudgetReached, BatchRefused) as stop:
                return stop
            remaining = remaining[n_sent:]
        return None

    def _sendable(self, task: JudgeTask, chosen: Sequence[OpenQuery]) -> Sequence[OpenQuery]:
        state, most = self._recorder.state, task.rules.retries
        wanted = (each for each in chosen if self._n_sent[each.asked.query_key] <= most)
        now = (reopened(state, query, task.rules) for query in wanted)
        return tuple(query for query in now if query is not None)

    def _send(self, task: JudgeTask, queries: Sequence[OpenQuery]) -> int:
        """Commit a plan, then send it once; return how many queries it asks.

        Raises:
            BudgetReached: It might cost more than is left; nothing was planned.
            BatchRefused: The provider took it not; nor will it next time.
        """
        queries = affordable(self._recorder, task, queries)
        asked = [query.asked for query in queries]
        self._n_sent.update(question.query_key for question in asked)
        self._n_expected += len(asked)
        expected, worst = task.pricing.expected_usd(asked), task.pricing.worst_usd(asked)
        self._recorder.record(PlanBatch(task.judge, tuple(queries), expected, worst, task.max_usd))
        batch = self._recorder.state.open_batches[-1]
        try:
            created = self._port.create(asked)
        except (BatchRefused, SpendLimitReached, NoCredentials) as error:
            self._recorder.record(DropBatch(batch.planned.batch_key, str(error)))
            self._n_sent.subtract(question.query_key for question in asked)
            raise
        except BatchUncertain as error:
            self._how.tell(f"{error.why}; looking for it")
            settle_all(self._recorder, self._port, self._how)
        else:
            self._recorder.record(SubmitBatch(batch.planned.batch_key, created, tuple(queries)))
            self._how.tell(f"batch {created.provider_batch_id}: {len(queries)} queries sent")
        return len(queries)

    def _receive(self, batch: Batch, state: BatchState) -> None:
        """Record every answer of an ended batch, and its end."""
        try:
            self._read(batch, state)
        except ResultsLost as lost:
            self._how.tell(f"{lost.why}: its queries are asked again")
        self._recorder.record(EndBatch(batch.planned.batch_key, state))
        self._how.tell(
            f"batch {state.provider_batch_id} ended: {state.n_succeeded} answered,"
            f" {state.n_queries - state.n_succeeded} not"
        )

    def _read(self, batch: Batch, state: BatchState) -> None:
        """Record a batch's answers as they are read.

        Raises:
            ProviderError: They are not all there; nothing may be asked again for that.
        """
        missing = set(batch.planned.queries)
        answers = self._port.results(state.provider_batch_id)
        while group := tuple(islice(answers, _GROUP)):
            self._record(batch, group)
            missing.difference_update(answer.query_key for answer in group)
            self._n_received += len(group)
            self._how.on_progress("answers", self._n_received, self._n_expected)
        if missing:
            raise ProviderError(
                f"batch {state.provider_batch_id} has ended, and the provider gave no result for"
                f" {len(missing)} of its {len(batch.planned.queries)} queries"
            )

    def _record(self, batch: Batch, group: Sequence[Answer]) -> None:
        judge = self._recorder.state.judges[batch.planned.judge]
        pricing = self._how.pricing_of(judge)
        asked = frozenset(batch.planned.queries)
        distinct = {answer.query_key: answer for answer in group if answer.query_key in asked}
        self._recorder.record(*(received(judge, each, pricing) for each in distinct.values()))


def _submitted(batch: Batch) -> JudgeBatchSubmitted:
    if batch.submitted is None:
        raise LookupError(f"batch {batch.planned.batch_key} was not submitted")
    return batch.submitted
