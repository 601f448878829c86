"""Use case: put the open queries to a judge, keep each reply, and reconcile the pairs."""

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Final, NamedTuple

from commands.command import ReceiveReply, ReconcilePair, SubmitQuery
from commands.ports import Judge
from commands.progress import OnProgress
from commands.recorder import Recorder
from ledger.events.registration import JudgeSettings
from ledger.identity import PromptId
from projections.progress import OpenQuery, open_queries, unreconciled
from projections.reconcile import DEFAULT_POLICY

_CHUNK: Final = 64  # queries submitted in one transaction, before the first is answered


class Judged(NamedTuple):
    """What a run of the judge added."""

    n_open: int
    n_verdicts: int
    n_failed: int  # of those asked now, without a verdict at the end
    n_reconciled: int


def judge_open(
    recorder: Recorder,
    judge: JudgeSettings,
    make_judge: Callable[[], Judge],
    prompts: Collection[PromptId],
    *,
    retries: int,
    on_progress: OnProgress,
    limit: int | None = None,
) -> Judged:
    """Ask for every verdict that the ledger lacks; a reply that says none is asked for again."""
    queries = open_queries(recorder.state, prompts, judge, retries=retries)
    chosen = frozenset(query.asked.query_key for query in queries[:limit])
    if chosen:
        port = make_judge()
        asked = queries[:limit]
        for _ in range(retries + 1):
            if not asked:
                break
            _ask(recorder, judge, port, asked, on_progress)
            still_open = open_queries(recorder.state, prompts, judge, retries=retries)
            asked = tuple(query for query in still_open if query.asked.query_key in chosen)
    n_reconciled = _reconcile(recorder, judge, prompts)
    n_verdicts = sum(key in recorder.state.verdicts for key in chosen)
    return Judged(len(queries), n_verdicts, len(chosen) - n_verdicts, n_reconciled)


def _ask(
    recorder: Recorder,
    judge: JudgeSettings,
    port: Judge,
    queries: Sequence[OpenQuery],
    on_progress: OnProgress,
) -> None:
    """Submit a chunk, record its replies as they come, go on to the next."""
    n_done = 0
    remaining = iter(queries)
    while chunk := tuple(islice(remaining, _CHUNK)):
        recorder.record(*(SubmitQuery(judge.judge_id, query) for query in chunk))
        for reply in port.answer([query.asked for query in chunk]):
            recorder.record(ReceiveReply(judge.judge_id, reply))
            n_done += 1
            on_progress("verdicts", n_done, len(queries))


def _reconcile(recorder: Recorder, judge: JudgeSettings, prompts: Collection[PromptId]) -> int:
    matches = unreconciled(recorder.state, prompts, judge, DEFAULT_POLICY)
    return recorder.record(
        *(ReconcilePair(judge.judge_id, DEFAULT_POLICY, match) for match in matches)
    )
