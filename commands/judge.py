"""Use case: put the open queries to a judge, keep each answer, and reconcile the pairs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.budget import Budget
from commands.command import ReceiveAnswer, ReconcilePair, SubmitQuery
from commands.errors import ProviderError, Refused
from commands.ports import Answer, Judge, Reply
from commands.pricing import FREE_OF_CHARGE, Pricing
from commands.progress import OnProgress
from commands.recorder import Recorder
from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
from projections.progress import AskingRules, OpenQuery, open_queries, reopened, unreconciled
from projections.reconcile import DEFAULT_POLICY

_CHUNK: Final = 256  # queries submitted in one transaction, and then waited for


@dataclass(frozen=True)
class JudgeTask:
    """What is to be judged, by whom, and what may be spent on it."""

    judge: JudgeSettings
    prompts: Collection[PromptId]
    rules: AskingRules
    pricing: Pricing = FREE_OF_CHARGE
    max_usd: float | None = None  # None: no cap
    limit: int | None = None  # queries put now, at most


class Judged(NamedTuple):
    """What a run of the judge added."""

    n_open: int
    n_verdicts: int
    n_failed: int  # of those asked now, without a verdict at the end
    n_reconciled: int


def open_now(recorder: Recorder, task: JudgeTask) -> tuple[OpenQuery, ...]:
    """Return what a task would ask at this moment."""
    return open_queries(recorder.state, task.prompts, task.judge, task.rules)


def judge_open(
    recorder: Recorder,
    task: JudgeTask,
    make_judge: Callable[[], Judge],
    *,
    on_progress: OnProgress,
) -> Judged:
    """Ask for every verdict that the ledger lacks; a reply that says none is asked for again.

    Raises:
        Refused: The next queries might cost more than is left; what was paid for is recorded.
    """
    queries = open_now(recorder, task)
    asked = queries[: task.limit]
    try:
        if asked:
            _ask_and_again(recorder, task, make_judge(), asked, on_progress)
    except (Refused, ProviderError):
        reconcile_open(recorder, task)
        raise
    n_reconciled = reconcile_open(recorder, task)
    n_verdicts = sum(each.asked.query_key in recorder.state.verdicts for each in asked)
    return Judged(len(queries), n_verdicts, len(asked) - n_verdicts, n_reconciled)


def _ask_and_again(
    recorder: Recorder,
    task: JudgeTask,
    port: Judge,
    chosen: Sequence[OpenQuery],
    on_progress: OnProgress,
) -> None:
    """Ask, and ask again what has no verdict, as long as the rules allow it."""
    asked = chosen
    for _ in range(task.rules.retries + 1):
        _ask(recorder, task, port, asked, on_progress)
        now = (reopened(recorder.state, query, task.rules) for query in chosen)
        asked = tuple(query for query in now if query is not None)


def _ask(
    recorder: Recorder,
    task: JudgeTask,
    port: Judge,
    queries: Sequence[OpenQuery],
    on_progress: OnProgress,
) -> None:
    """Submit a chunk, record its answers as they come, go on to the next."""
    n_done, remaining = 0, queries
    while remaining:
        chunk = affordable(recorder, task, remaining[:_CHUNK])
        remaining = remaining[len(chunk) :]
        recorder.record(*(SubmitQuery(task.judge.judge_id, query) for query in chunk))
        for answer in port.answer([query.asked for query in chunk]):
            recorder.record(received(task.judge, answer, task.pricing))
            n_done += 1
            on_progress("verdicts", n_done, len(queries))


def affordable(
    recorder: Recorder, task: JudgeTask, queries: Sequence[OpenQuery]
) -> Sequence[OpenQuery]:
    """Return the start of the queries that the cap allows, whatever is in flight costs.

    Raises:
        BudgetReached: Not even the first is affordable.
    """
    in_flight = recorder.state.open_batches
    if task.max_usd is not None and any(each.planned.worst_usd is None for each in in_flight):
        raise Refused("a batch of unknown price is in flight, so no cap can be kept until it ends")
    return Budget(task.max_usd, task.pricing).affordable(
        queries,
        spent_usd=recorder.state.spent_usd,
        in_flight_usd=sum(batch.planned.worst_usd or 0.0 for batch in in_flight),
    )


def received(judge: JudgeSettings, answer: Answer, pricing: Pricing) -> ReceiveAnswer:
    """Return the command to keep an answer, with the price that holds for it."""
    usage = answer.usage if isinstance(answer, Reply) else None
    return ReceiveAnswer(judge, answer, None if usage is None else pricing.price_of(usage))


def reconcile_open(recorder: Recorder, task: JudgeTask) -> int:
    """Decide every pair that can be decided, and say how many were."""
    judge, skips = task.judge, task.rules.skip_identical
    matches = unreconciled(
        recorder.state, task.prompts, judge, DEFAULT_POLICY, skip_identical=skips
    )
    return recorder.record(
        *(ReconcilePair(judge.judge_id, DEFAULT_POLICY, match) for match in matches)
    )
