"""Use case: judge in batches that go on without this process, and never pay for one twice.

A plan is recorded before its batch is sent, and a batch is sent at most once. Batches of unknown
fate are recovered (recovery.py), so the same command run again continues where the last one died.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import accumulate, takewhile
from typing import Final, TypeAlias

from commands.decisions.commands import DropBatch, PlanBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchGone,
    BatchRefused,
    BatchUncertain,
    NoCredentials,
    SpendLimitReached,
)
from commands.judging.judge import (
    JudgeTask,
    JudgingSummary,
    affordable,
    open_now,
    reconcile_open,
    remembering_lost,
    still_open,
)
from commands.judging.receiving import BatchReceiver
from commands.judging.recovery import BatchOptions, resolve_batches
from commands.ports import BatchJudgeOf
from commands.spending.budget import BudgetReached
from ledger.errors import StaleVersion, TourneyError
from ledger.identity import Digest
from projections.tournament.progress import AskingRules, OpenQuery
from projections.verdicts.queries import JudgeQuery

# Anthropic takes 256 MB a batch, OpenAI 200 (2026), but their SDKs hold a body twice in memory.
_MOST_BYTES: Final = 64_000_000


def fitting_prefix(
    queries: Sequence[OpenQuery], n_bytes: Callable[[JudgeQuery], int]
) -> Sequence[OpenQuery]:
    """Return as many of the first queries as fit a batch by bytes, and at least one."""
    sizes = accumulate(n_bytes(query.asked) for query in queries)
    n_fitting = sum(1 for _ in takewhile(lambda size: size <= _MOST_BYTES, sizes))
    return queries[: max(n_fitting, 1)]


Stop: TypeAlias = BudgetReached | BatchRefused

_WARM: Final = timedelta(minutes=5)  # how long a provider's cache keeps a rubric, at least
_MOST_DROPPED: Final = 3  # batches that were never created, before giving up


def judge_in_batches(
    recorder: Recorder, task: JudgeTask, port_of: BatchJudgeOf, options: BatchOptions
) -> JudgingSummary:
    """Send open queries and receive batches until neither is left; then reconcile.

    Raises:
        WorkInFlight: The command does not wait for the batches; they go on.
        BudgetReached: The remaining queries might exceed the cap; the others are done.
        ProviderError: The provider fails; everything recorded is kept.
    """
    task = remembering_lost(recorder, task)
    try:
        resume_batches(recorder, port_of, options)
        queries = open_now(recorder, task)
        chosen = queries[: task.limit]
        if chosen or recorder.state.open_batches:
            _BatchJudging(recorder, task, port_of, options).judge(chosen)
    except TourneyError:
        reconcile_open(recorder, task)
        raise
    n_reconciled = reconcile_open(recorder, task)
    n_verdicts = sum(each.asked.query_key in recorder.state.verdicts for each in chosen)
    return JudgingSummary(len(queries), n_verdicts, len(chosen) - n_verdicts, n_reconciled)


@contextmanager
def reconciling(recorder: Recorder, rules: AskingRules) -> Iterator[None]:
    """Reconcile at the end the pairs of every judge with batches, even after an error.

    A command may receive batches of another judge than its own.
    """
    try:
        yield
    except TourneyError:
        _reconcile_all(recorder, rules)
        raise
    _reconcile_all(recorder, rules)


def _reconcile_all(recorder: Recorder, rules: AskingRules) -> None:
    state = recorder.state
    asked = {batch.planned.judge.label for batch in state.own_batches}
    prompts = [prompt.prompt_id for prompt in state.bank]
    for judge in state.panel:
        if judge.judge_id in asked:
            reconcile_open(recorder, JudgeTask(judge, prompts, rules))


def resume_batches(recorder: Recorder, port_of: BatchJudgeOf, options: BatchOptions) -> None:
    """Receive the batches of earlier commands, or only resolve unknown ones if nobody waits.

    Raises:
        WorkInFlight: A batch's fate is not known yet, and the command does not wait.
    """
    if not recorder.state.open_batches:
        return
    if options.polling.waits:
        BatchReceiver(recorder, port_of, options).receive_all()
    else:
        resolve_batches(recorder, port_of, options)


class _BatchJudging:
    """Sends one judge's batches, and receives all of the tournament."""

    def __init__(
        self, recorder: Recorder, task: JudgeTask, port_of: BatchJudgeOf, options: BatchOptions
    ) -> None:
        self._recorder, self._task, self._options = recorder, task, options
        self._port_of, self._port = port_of, port_of(task.judge)
        self._reception = BatchReceiver(recorder, port_of, options)
        self._n_sent: Counter[Digest] = Counter()  # by this process
        self._n_dropped = 0

    def judge(self, chosen: Sequence[OpenQuery]) -> None:
        """Send and receive until the chosen queries are answered, or cannot be."""
        if self._options.prewarm and self._options.polling.waits:
            self._prewarm(chosen)
        while True:
            stopped_by = self._send_all(chosen)
            if stopped_by is not None:
                self._options.tell(f"some queries are not sent yet: {stopped_by}")
            if self._recorder.state.open_batches:
                self._reception.receive_some()
            elif stopped_by is not None:
                raise stopped_by
            elif not self._sendable(chosen):
                return

    def _prewarm(self, chosen: Sequence[OpenQuery]) -> None:
        """Send one query per rubric first, so that the others find its prefix in the cache."""
        if self._is_warm():
            return
        queries, firsts = self._sendable(chosen), dict[str, OpenQuery]()
        for query in queries:
            firsts.setdefault(query.asked.system, query)
        if len(queries) > 2 * len(firsts) and self._task.pricing.caches(queries[0].asked):
            self._send([*firsts.values()])
            self._reception.receive_all()

    def _is_warm(self) -> bool:
        """Say whether an earlier command has just sent batches to this judge, with this key.

        A provider's cache belongs to a workspace, as its batches do: a key that does not see the
        batches of an earlier command does not find what they cached, either.
        """
        since = self._options.polling.now() - _WARM
        return any(
            batch.planned.judge.label == self._task.judge.judge_id
            and batch.planned.planned_at > since
            and batch.submitted is not None
            and self._sees(batch.submitted.provider_batch_id)
            for batch in self._recorder.state.own_batches
        )

    def _sees(self, provider_batch_id: str) -> bool:
        try:
            self._port.retrieve(provider_batch_id)
        except BatchGone:
            return False
        return True

    def _send_all(self, chosen: Sequence[OpenQuery]) -> Stop | None:
        """Send batches until none may be sent now; return what stopped it, or None."""
        at_most, remaining = self._options.batch_queries, chosen
        while remaining:
            next_ones, remaining = remaining[:at_most], remaining[at_most:]
            if not (sendable := self._sendable(next_ones)):
                continue
            try:
                n_sent = self._send(fitting_prefix(sendable, self._port.n_bytes))
            except (BudgetReached, BatchRefused) as stop:
                return stop
            remaining = (*sendable[n_sent:], *remaining)
        return None

    def _sendable(self, chosen: Sequence[OpenQuery]) -> Sequence[OpenQuery]:
        most = self._task.rules.retries
        retriable = (each for each in chosen if self._n_sent[each.asked.query_key] <= most)
        return still_open(self._recorder, self._task, retriable)

    def _send(self, queries: Sequence[OpenQuery]) -> int:
        """Record a plan, then send it once; return its number of queries.

        Raises:
            BudgetReached: It might cost more than is left; nothing was planned.
            BatchRefused: The provider rejected the batch, and would again.
        """
        task, n_requested = self._task, len(queries)
        queries = affordable(self._recorder, task, queries)
        if len(queries) < n_requested:
            self._options.tell(f"the cap allows {len(queries)} queries now, each at its worst")
        asked = [query.asked for query in queries]
        expected, worst = task.pricing.expected_usd(asked), task.pricing.worst_usd(asked)
        now, version = self._options.polling.now(), self._recorder.state.version
        plan = PlanBatch(task.judge, tuple(queries), expected, worst, task.max_usd, planned_at=now)
        try:
            self._recorder.record(plan)
        except StaleVersion:  # a merge may have answered some: plan again
            return 0
        key = self._key_of_plan(version + 1)
        self._n_sent.update(question.query_key for question in asked)
        try:
            created = self._port.create(asked)
        except (BatchRefused, SpendLimitReached, NoCredentials) as error:
            self._recorder.record(DropBatch(key, str(error)))
            self._n_sent.subtract(question.query_key for question in asked)
            raise
        except BatchUncertain as error:
            self._options.tell(f"{error.why}; looking for the batch at the provider")
            resolve_batches(self._recorder, self._port_of, self._options)
            self._count_dropped(key, asked, error)
        else:
            self._recorder.record(SubmitBatch(key, created, tuple(queries)))
            self._options.tell(f"batch {created.provider_batch_id}: {len(queries)} queries sent")
        return len(queries)

    def _key_of_plan(self, version: int) -> Digest:
        """Return the key of the plan at a version; a merge may have added others since."""
        own = self._recorder.state.own_batches
        (key,) = (each.planned.batch_key for each in own if each.recorded.version == version)
        return key

    def _count_dropped(
        self, key: Digest, asked: Sequence[JudgeQuery], error: BatchUncertain
    ) -> None:
        """Count a batch that was never created as not sent; give up after several."""
        if self._recorder.state.batches[key].status != "not created":
            return
        self._n_dropped += 1
        self._n_sent.subtract(question.query_key for question in asked)
        if self._n_dropped > _MOST_DROPPED:
            raise error
