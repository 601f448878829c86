"""Use case: judge in batches that go on without this process, and never pay for one twice.

A plan is recorded before its batch is sent. A batch is sent again only after a refusal, and after
it was looked for: something between may refuse what it passed on. Batches of unknown fate are
recovered (batch_recovery.py), so the same command run again goes on where the last died.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate, islice, takewhile
from typing import Final

from commands.decisions.commands import DropBatch, PlanBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchBusy,
    BatchRefused,
    BatchTooLarge,
    BatchUncertain,
    NoCredentials,
    NothingReadable,
    ProviderError,
    SpendLimitReached,
    counted,
)
from commands.judging.batch_recovery import SKEW, FateUnknown, sent_since
from commands.judging.judge import (
    JudgeTask,
    JudgingSummary,
    affordable,
    n_answered,
    reconcile_open,
    still_open,
)
from commands.judging.receiving import BatchReceiver
from commands.judging.unreadable import ReadingBrake
from commands.ports import BatchState, Tell
from commands.spending.budget import BudgetReached
from ledger.errors import StaleVersion, TourneyError
from ledger.identity import Digest
from projections.tournament.remaining import AskingRules, Unanswered
from projections.verdicts.queries import JudgeQuery

# Anthropic takes 256 MB a batch, OpenAI 200 (2026), but their SDKs hold a body twice in memory.
_MOST_BYTES: Final = 64_000_000


def fitting_prefix(
    queries: Sequence[Unanswered], n_bytes: Callable[[JudgeQuery], int]
) -> Sequence[Unanswered]:
    """Return as many of the first queries as fit a batch by bytes, and at least one."""
    sizes = accumulate(n_bytes(query.asked) for query in queries)
    n_fitting = sum(1 for _ in takewhile(lambda size: size <= _MOST_BYTES, sizes))
    return queries[: max(n_fitting, 1)]


_MOST_DROPPED: Final = 3  # batches that were never created, before giving up
_MOST_LESSONS: Final = 5  # of a query: parameters that a server may not take
_MOST_WAITS: Final = 6  # for a provider that takes no batch at present
_LONGEST_WAIT_S: Final = 120.0  # longer looks like a hang
_CLOCKS_APART: Final = timedelta(minutes=5)  # of a provider's own machines


def judge_in_batches(
    recorder: Recorder, task: JudgeTask, reception: BatchReceiver
) -> JudgingSummary:
    """Send open queries, receive all that is in flight, and reconcile; see `attending_batches`.

    Args:
        recorder: The tournament.
        task: What is judged.
        reception: It has received what earlier commands sent, if this one waits.

    Raises:
        WorkInFlight: The command does not wait for the batches; they go on.
        BudgetReached: The remaining queries might exceed the cap; the others are done.
        NothingReadable: The replies received now hold no verdict or score; no more are sent for.
        ProviderError: The provider fails; everything recorded is kept.
    """
    queries = task.open_in(recorder.state)
    chosen = queries[: task.limit]
    if chosen:
        _BatchJudging(recorder, task, reception).judge(chosen)
    reception.receive_all()
    n_reconciled = reconcile_open(recorder, task)
    n_verdicts = n_answered(recorder.state, chosen)
    return JudgingSummary(len(queries), n_verdicts, len(chosen) - n_verdicts, n_reconciled)


@contextmanager
def attending_batches(recorder: Recorder, rules: AskingRules, tell: Tell) -> Iterator[None]:
    """Reconcile at the end the pairs of every judge with batches, even after an error.

    A command may receive batches of another judge than its own. On Ctrl-C, list the batches that
    keep running, and how to go on.
    """
    try:
        yield
    except KeyboardInterrupt:
        for batch in recorder.state.open_batches:
            name = batch.submitted.provider_batch_id if batch.submitted else "not yet known"
            queries = counted(len(batch.planned.queries), "query is", "queries are")
            tell(f"batch {name} keeps running: {queries} billed")
        if recorder.state.open_batches:
            tell("`tourney batch wait` receives them, `tourney batch cancel` stops them")
        raise
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


class _BatchJudging:
    """Sends one judge's batches."""

    def __init__(self, recorder: Recorder, task: JudgeTask, reception: BatchReceiver) -> None:
        self._recorder, self._task, self._reception = recorder, task, reception
        self._port, self._options = reception.port_of(task.judge), reception.options
        self._at_most = reception.options.most_queries
        self._n_sent: Counter[Digest] = Counter()  # by this process
        self._uncertain: dict[Digest, BatchUncertain] = {}  # its batches that may not exist
        self._n_dropped = 0

    def judge(self, chosen: Sequence[Unanswered]) -> None:
        """Send and receive until the chosen queries are answered, or cannot be."""
        if self._options.prewarms and self._options.waits:
            self._send_now(self._prewarming(chosen))
            self._reception.receive_all()
        self._reception.receive_all(partial(self._send_now, chosen))

    def _prewarming(self, chosen: Sequence[Unanswered]) -> Sequence[Unanswered]:
        """Return one query per rubric: once they are answered, the others find it in the cache."""
        queries, firsts = self._sendable(chosen), dict[str, Unanswered]()
        for query in queries:
            firsts.setdefault(query.asked.system, query)
        if len(queries) <= 2 * len(firsts):
            return []
        return [*firsts.values()] if self._task.pricing.caches(queries[0].asked) else []

    def _send_now(self, chosen: Sequence[Unanswered]) -> None:
        """Send what may be sent now; nothing, while it is not known whether a batch exists.

        Raises:
            BudgetReached: The cap allows no more, and no open batch can change that.
            BatchRefused: The provider takes no more, and no open batch can change that.
            NothingReadable: The judge's replies hold nothing readable, and none is under way.
        """
        self._count_dropped()
        if self._uncertain:
            return
        try:
            self._send_all(chosen)
        except BatchUncertain as error:
            self._options.tell(f"{error.why}; looking for the batch at the provider")
        except (BudgetReached, BatchRefused, NothingReadable) as stop:
            if not self._recorder.state.open_batches:
                raise
            self._options.tell(f"some queries are not sent yet: {stop}")

    def _send_all(self, chosen: Sequence[Unanswered]) -> None:
        remaining = chosen
        while remaining:
            next_ones, remaining = remaining[: self._at_most], remaining[self._at_most :]
            if sendable := self._sendable(next_ones):
                n_sent = self._send_fitting(fitting_prefix(sendable, self._port.n_bytes))
                remaining = (*sendable[n_sent:], *remaining)

    def _send_fitting(self, queries: Sequence[Unanswered]) -> int:
        """Send a batch; if it is too large for the provider, send half as many from now on."""
        try:
            return self._send(queries)
        except BatchTooLarge as refusal:
            if len(queries) == 1:
                raise
            self._at_most = len(queries) // 2
            most = counted(self._at_most, "query", "queries")
            self._options.tell(f"{refusal.why}; from now on a batch has {most} at most")
            return 0

    def _sendable(self, chosen: Sequence[Unanswered]) -> Sequence[Unanswered]:
        retriable = (each for each in chosen if self._may_send(each.asked.query_key))
        return still_open(self._recorder, self._task, retriable)

    def _may_send(self, key: Digest) -> bool:
        """Say whether a query has a try left; one that taught what its server takes was none."""
        n_lessons = min(self._reception.n_other_form[key], _MOST_LESSONS)
        return self._n_sent[key] - n_lessons <= self._task.rules.retries

    def _send(self, queries: Sequence[Unanswered]) -> int:
        """Record a plan, then send it once; return its number of queries.

        Raises:
            BudgetReached: It might cost more than is left; nothing was planned.
            BatchRefused: The provider rejected the batch, and would again.
            BatchUncertain: Whether the batch exists is not known.
            NothingReadable: The batches that ended now hold nothing readable.
        """
        self._require_readable()
        task, n_requested = self._task, len(queries)
        queries = affordable(self._recorder, task, queries)
        if len(queries) < n_requested:
            self._options.tell(
                f"the cap allows {len(queries)} queries now, at their worst-case cost"
            )
        asked = [query.asked for query in queries]
        expected, worst = task.pricing.expected_usd(asked), task.pricing.worst_usd(asked)
        told, version = self._port.now(), self._recorder.state.version
        now = told or self._options.now()
        plan = PlanBatch(task.judge, tuple(queries), expected, worst, task.max_usd, planned_at=now)
        try:
            self._recorder.record(plan)
        except StaleVersion:  # a merge may have answered some: plan again
            return 0
        key = self._key_of_plan(version + 1)
        self._n_sent.update(question.query_key for question in asked)
        try:
            created = self._created(key, asked, now - (SKEW if told is None else _CLOCKS_APART))
        except (BatchRefused, SpendLimitReached, NoCredentials) as error:
            self._recorder.record(DropBatch(key, str(error)))
            self._n_sent.subtract(question.query_key for question in asked)
            raise
        except BatchUncertain as error:
            self._uncertain[key] = error
            raise
        self._recorder.record(SubmitBatch(key, created, tuple(queries)))
        self._options.tell(f"batch {created.provider_batch_id}: {len(queries)} queries sent")
        return len(queries)

    def _require_readable(self) -> None:
        brake, batches = (
            ReadingBrake(self._task.judge, self._task.wanted),
            self._recorder.state.batches,
        )
        for key in self._reception.ended:
            if batches[key].planned.judge.label == self._task.judge.judge_id:
                brake.note(self._recorder.state, batches[key].planned.queries)
        if (why := brake.why_stop()) is not None:
            raise why

    def _created(self, key: Digest, asked: Sequence[JudgeQuery], since: datetime) -> BatchState:
        """Send a batch, and again while the provider is busy, unless it took the batch.

        Args:
            key: The planned batch.
            asked: Its queries.
            since: Before it was sent, by the provider's clock.

        Raises:
            BatchRefused: The provider does not take it, and does not have it.
            BatchUncertain: Whether the batch exists is not known.
        """
        delays_s = islice(self._options.delays_s(), _MOST_WAITS)
        while True:
            try:
                return self._port.create(asked)
            except (BatchRefused, SpendLimitReached, NoCredentials) as refusal:
                has_waited = self._has_waited(refusal, next(delays_s, None))
                if (taken := self._taken(key, refusal, since)) is not None:
                    return taken
                if not has_waited:
                    raise

    def _has_waited(self, refusal: TourneyError, delay_s: float | None) -> bool:
        """Wait for a busy provider, as long as it asks; say whether it is worth another try."""
        if not isinstance(refusal, BatchBusy) or delay_s is None:
            return False
        wait_s = delay_s if refusal.asked_s is None else refusal.asked_s
        if wait_s <= _LONGEST_WAIT_S:
            self._options.sleep(wait_s)
        return wait_s <= _LONGEST_WAIT_S

    def _taken(
        self,
        key: Digest,
        refusal: BatchRefused | SpendLimitReached | NoCredentials,
        since: datetime,
    ) -> BatchState | None:
        """Return a batch that was refused and yet exists; None if it does not.

        Raises:
            BatchUncertain: It cannot be known yet.
        """
        if not refusal.was_sent:
            return None
        state = self._recorder.state
        try:
            return sent_since(state, self._port, state.batches[key], since)
        except (FateUnknown, ProviderError, SpendLimitReached, NoCredentials) as error:
            raise BatchUncertain(f"{refusal}; {error}") from error

    def _key_of_plan(self, version: int) -> Digest:
        """Return the key of the plan at a version; a merge may have added others since."""
        own = self._recorder.state.own_batches
        (key,) = (each.planned.batch_key for each in own if each.recorded.version == version)
        return key

    def _count_dropped(self) -> None:
        """Count batches that were never created as not sent; give up after several."""
        for key, error in [*self._uncertain.items()]:
            batch = self._recorder.state.batches[key]
            if batch.status == "unknown":
                continue
            del self._uncertain[key]
            if batch.status == "not created":
                self._n_dropped += not self._recorder.state.open_batches  # which may change that
                self._n_sent.subtract(batch.planned.queries)
                if self._n_dropped > _MOST_DROPPED:
                    raise error
