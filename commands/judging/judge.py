"""Use case: send open queries to a judge, record each answer, and reconcile the pairs.

Judging in batches shares the task, the cap and the reconciliation.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.decisions.commands import ReceiveAnswer, ReconcilePair, SubmitQuery
from commands.decisions.recorder import Recorder
from commands.errors import ProviderError, Refused
from commands.ports import Answer, Judge, NoReply, OnProgress, Reply
from commands.spending.budget import Exposure, affordable_queries
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.errors import StaleVersion
from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
from projections.tournament import progress
from projections.tournament.spend import may_have_been_billed
from projections.verdicts.policies import DEFAULT_POLICY

_CHUNK: Final = 256  # queries submitted in one transaction, then waited for
_MOST_UNCERTAIN: Final = 10  # failures in a row; a lost connection fails the 8 in parallel


@dataclass(frozen=True)
class JudgeTask:
    """The judge, the prompts, the rules, and the cap of one judging command."""

    judge: JudgeSettings
    prompts: Collection[PromptId]
    rules: progress.AskingRules
    pricing_of: Callable[[JudgeSettings], Pricing] = lambda _: FREE_OF_CHARGE
    max_usd: float | None = None  # None: no cap
    spent_elsewhere_usd: float = 0.0  # on endpoint entrants, if the cap covers them, too
    limit: int | None = None  # most queries to send now

    @property
    def pricing(self) -> Pricing:
        """The prices of its judge."""
        return self.pricing_of(self.judge)


class JudgingSummary(NamedTuple):
    """How many queries were open before, and what became of them."""

    n_open: int
    n_verdicts: int
    n_failed: int  # sent now, and without a verdict at the end
    n_reconciled: int


def open_now(recorder: Recorder, task: JudgeTask) -> tuple[progress.OpenQuery, ...]:
    """Return the queries of a task that are open now."""
    return progress.open_queries(recorder.state, task.prompts, task.judge, task.rules)


def judge_open(
    recorder: Recorder,
    task: JudgeTask,
    make_judge: Callable[[], Judge],
    *,
    on_progress: OnProgress,
) -> JudgingSummary:
    """Ask for every missing verdict; a query whose reply has none is retried.

    Raises:
        Refused: The next queries might exceed the cap; all answers are recorded.
        ProviderError: The judge fails, or leaves request after request unanswered.
    """
    queries = open_now(recorder, task)
    asked = queries[: task.limit]
    try:
        if asked:
            _DirectJudging(recorder, task, make_judge(), on_progress).ask_with_retries(asked)
    except (Refused, ProviderError):
        reconcile_open(recorder, task)
        raise
    n_reconciled = reconcile_open(recorder, task)
    n_verdicts = sum(each.asked.query_key in recorder.state.verdicts for each in asked)
    return JudgingSummary(len(queries), n_verdicts, len(asked) - n_verdicts, n_reconciled)


class _DirectJudging:
    """Sends queries to one judge and waits for the answers."""

    def __init__(
        self, recorder: Recorder, task: JudgeTask, port: Judge, on_progress: OnProgress
    ) -> None:
        self._recorder, self._task, self._port = recorder, task, port
        self._on_progress = on_progress
        self._exposure = Exposure(recorder, task.pricing_of)
        self._n_uncertain = 0  # failures in a row that may have been billed

    def ask_with_retries(self, chosen: Sequence[progress.OpenQuery]) -> None:
        """Send queries, and retry those without a verdict as often as the rules allow."""
        for _ in range(self._task.rules.retries + 1):
            self._ask(still_open(self._recorder, self._task, chosen))

    def _ask(self, queries: Sequence[progress.OpenQuery]) -> None:
        """Submit the queries in chunks, and record answers as they come."""
        task, n_done, remaining = self._task, 0, queries
        while remaining:
            wanted = still_open(self._recorder, task, remaining[:_CHUNK])
            chunk = affordable(self._recorder, task, wanted, self._exposure) if wanted else ()
            if not self._submits(chunk):
                continue
            remaining = (*wanted[len(chunk) :], *remaining[_CHUNK:])
            for answer in self._port.answer([query.asked for query in chunk]):
                self._recorder.record(answer_command(task.judge, answer, task.pricing))
                n_done += 1
                self._on_progress("verdicts", n_done, len(queries))
                self._require_certain(answer)

    def _submits(self, chunk: Sequence[progress.OpenQuery]) -> bool:
        """Record the submission; return False if a merge came first, and may have answered some."""
        judge = self._task.judge.judge_id
        try:
            self._recorder.record(*(SubmitQuery(judge, query) for query in chunk))
        except StaleVersion:
            return False
        return True

    def _require_certain(self, answer: Answer) -> None:
        """Stop if request after request is unanswered and may be billed."""
        if not isinstance(answer, NoReply) or not may_have_been_billed(answer.detail):
            self._n_uncertain = 0
            return
        self._n_uncertain += 1
        if self._n_uncertain == _MOST_UNCERTAIN:
            raise ProviderError(
                f"{_MOST_UNCERTAIN} requests in a row got no answer, last error: {answer.detail!r}"
            )


def still_open(
    recorder: Recorder, task: JudgeTask, queries: Iterable[progress.OpenQuery]
) -> tuple[progress.OpenQuery, ...]:
    """Return the queries that are still open: a merge may bring verdicts meanwhile."""
    now = (progress.refreshed_query(recorder.state, query, task.rules) for query in queries)
    return tuple(query for query in now if query is not None)


def affordable(
    recorder: Recorder, task: JudgeTask, queries: Sequence[progress.OpenQuery], exposure: Exposure
) -> Sequence[progress.OpenQuery]:
    """Return as many of the first queries as the cap allows in the worst case.

    Raises:
        BudgetReached: Not even the first is affordable.
        Refused: No cap can be kept.
    """
    if task.max_usd is None:
        return queries
    bound_usd = recorder.state.spent_usd + task.spent_elsewhere_usd + exposure.usd()
    return affordable_queries(queries, task.pricing, cap_usd=task.max_usd, bound_usd=bound_usd)


def answer_command(judge: JudgeSettings, answer: Answer, pricing: Pricing) -> ReceiveAnswer:
    """Return the command to record an answer, with its price."""
    usage = answer.usage if isinstance(answer, Reply) else None
    return ReceiveAnswer(judge, answer, None if usage is None else pricing.price_of(usage))


def reconcile_open(recorder: Recorder, task: JudgeTask) -> int:
    """Reconcile every pair that can be; return how many were."""
    judge, skips = task.judge, task.rules.skip_identical
    matches = progress.unreconciled(
        recorder.state, task.prompts, judge, DEFAULT_POLICY, skip_identical=skips
    )
    return recorder.record(
        *(ReconcilePair(judge.judge_id, DEFAULT_POLICY, match) for match in matches)
    )
