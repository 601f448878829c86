"""Use case: put the open queries to a judge, keep each answer, and reconcile the pairs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from commands.budget import Budget
from commands.command import ReceiveAnswer, ReconcilePair, SubmitQuery
from commands.ports import Answer, Judge, Reply
from commands.pricing import FREE_OF_CHARGE, Pricing
from commands.progress import OnProgress
from commands.recorder import Recorder
from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
from projections.progress import AskingRules, OpenQuery, open_queries, unreconciled
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
    chosen = frozenset(query.asked.query_key for query in asked)
    port = make_judge() if asked else None
    for _ in range(task.rules.retries + 1):
        if port is None or not asked:
            break
        _ask(recorder, task, port, asked, on_progress)
        asked = tuple(each for each in open_now(recorder, task) if each.asked.query_key in chosen)
    n_reconciled = reconcile_open(recorder, task)
    n_verdicts = sum(key in recorder.state.verdicts for key in chosen)
    return Judged(len(queries), n_verdicts, len(chosen) - n_verdicts, n_reconciled)


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
        budget = Budget(task.max_usd, task.pricing)
        chunk = budget.affordable(remaining[:_CHUNK], spent_usd=recorder.state.spent_usd)
        remaining = remaining[len(chunk) :]
        recorder.record(*(SubmitQuery(task.judge.judge_id, query) for query in chunk))
        for answer in port.answer([query.asked for query in chunk]):
            recorder.record(received(task.judge, answer, task.pricing))
            n_done += 1
            on_progress("verdicts", n_done, len(queries))


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
