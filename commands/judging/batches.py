"""Use case: judge in batches; what is asked, paid and recorded there.

How batches are sent and received is in `commands/batching`: the same command run again goes on
where the last died.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from commands.batching.receiving import BatchOptions, BatchReceiver
from commands.batching.sending import BatchSender, telling_what_goes_on
from commands.decisions.commands import PlanBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.judging.judge import (
    JudgeTask,
    JudgingSummary,
    Receipts,
    affordable,
    concluded,
    reconcile,
    still_open,
)
from commands.judging.unreadable import ReadingBrake
from commands.ports import BatchAnswer, BatchJudge, BatchJudgeOf, BatchState, NoReply, Reply, Tell
from ledger.errors import TourneyError
from ledger.events.registration import JudgeSettings, Reference
from ledger.identity import Digest
from projections.evaluations.samples import Scorers, score_questions
from projections.tournament.remaining import (
    ENDLESS_RETRIES,
    Unanswered,
    one_request,
    repeats_of,
)
from projections.tournament.requests import Batch
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery


def judge_in_batches(
    recorder: Recorder, task: JudgeTask, port_of: BatchJudgeOf, reception: BatchReceiver
) -> JudgingSummary:
    """Send open queries, receive all that is in flight, and reconcile; see `attending_batches`.

    Args:
        recorder: The tournament.
        task: What is judged.
        port_of: Returns the judge's provider.
        reception: It has received what earlier commands sent, if this one waits.

    Raises:
        WorkInFlight: The command does not wait for the batches; they go on.
        BudgetReached: The remaining queries might exceed the cap; the others are done.
        NothingReadable: The replies received now hold no verdict or score; no more are sent for.
        ProviderError: The provider fails; everything recorded is kept.
    """
    queries = task.open_in(recorder.state)
    if chosen := queries[: task.limit]:
        sender = BatchSender(recorder, _JudgeWork(recorder, task, port_of(task.judge)), reception)
        if reception.options.prewarms and reception.options.waits:
            sender.send(_prewarming(task, sender.sendable(chosen)))
            reception.receive_all()
        reception.receive_all(partial(sender.send, chosen))
    reception.receive_all()
    return concluded(recorder, task, queries)


def _prewarming(task: JudgeTask, queries: Sequence[Unanswered]) -> Sequence[Unanswered]:
    """Return one query per rubric: once they are answered, the others find it in the cache."""
    firsts = dict[str, Unanswered]()
    for query in queries:
        firsts.setdefault(query.asked.system, query)
    if len(queries) <= 2 * len(firsts):
        return []
    return [*firsts.values()] if task.pricing.caches(queries[0].asked) else []


@contextmanager
def attending_batches(recorder: Recorder, tell: Tell) -> Iterator[None]:
    """Reconcile at the end the pairs of every judge with batches, even after an error.

    A command may receive batches of another judge than its own.
    """
    try:
        with telling_what_goes_on(recorder, tell):
            yield
    except TourneyError:
        _reconcile_all(recorder)
        raise
    _reconcile_all(recorder)


def _reconcile_all(recorder: Recorder) -> None:
    state = recorder.state
    judge_ids = {batch.planned.judge.label for batch in state.own_batches}
    prompts = [prompt.prompt_id for prompt in state.bank]
    for judge in state.panel:
        if judge.judge_id in judge_ids:
            reconcile(recorder, JudgeTask(judge, prompts, retries=0))


class _JudgeWork:
    """The queries of one judge, as `BatchWork`."""

    def __init__(self, recorder: Recorder, task: JudgeTask, port: BatchJudge) -> None:
        self._recorder, self._task = recorder, task
        self.port, self.n_tries = port, 1 + task.retries

    def still_open(self, items: Iterable[Unanswered], /) -> Sequence[Unanswered]:
        """Return the queries that are still open."""
        return still_open(self._recorder.state, self._task, items)

    def affordable(self, items: Sequence[Unanswered], /) -> Sequence[Unanswered]:
        """Return as many of the first queries as the cap allows."""
        return affordable(self._recorder.state, self._task, items)

    def request(self, item: Unanswered, /) -> JudgeQuery:
        """Return what is asked."""
        return item.asked

    def plan(self, items: Sequence[Unanswered], planned_at: datetime, /) -> Sequence[PlanBatch]:
        """Return the plan, with the cost of all queries."""
        judge, pricing = self._task.judge, self._task.pricing
        requests = [query.asked for query in items]
        return [
            PlanBatch(
                Reference(label=judge.judge_id, digest=judge.content_digest),
                tuple(request.query_key for request in requests),
                pricing.expected_usd(requests),
                pricing.worst_usd(requests),
                self._task.max_usd,
                planned_at=planned_at,
            )
        ]

    def submission(
        self, key: Digest, created: BatchState, items: Sequence[Unanswered], /
    ) -> SubmitBatch:
        """Return the submission, with the queries."""
        return SubmitBatch(key, created, tuple(items))

    def require_readable(self, ended: Sequence[Batch], /) -> None:
        """Require that the replies to this judge's queries say something."""
        brake = ReadingBrake(self._task.judge, self._task.wanted)
        for batch in ended:
            if batch.planned.judge.label == self._task.judge.judge_id:
                brake.note(self._recorder.state, batch.planned.queries)
        if (why := brake.why_stop()) is not None:
            raise why


class JudgeSide:
    """The batches of judges, as `BatchSide`."""

    def __init__(self, recorder: Recorder, port_of: BatchJudgeOf, options: BatchOptions) -> None:
        self._recorder, self._port_of, self._options = recorder, port_of, options
        self._receipts_of: dict[Reference, tuple[Receipts, Mapping[Digest, JudgeQuery]]] = {}

    def port_of(self, batch: Batch) -> BatchJudge:
        """Return the port of the judge that a batch was planned for."""
        return self._port_of(self._recorder.state.judges[batch.planned.judge])

    def submission(self, batch: Batch, found: BatchState) -> SubmitBatch:
        """Return the submission, with the queries as of the plan."""
        return SubmitBatch(batch.planned.batch_key, found, _queries_of(self._recorder, batch))

    def lost(self, batch: Batch) -> tuple[Unanswered, ...]:
        """Return what has no result, after its last attempt."""
        state = self._recorder.state
        queries = (_lost_of(state, query) for query in _queries_of(self._recorder, batch))
        return tuple(query for query in queries if query is not None)

    def record(self, batch: Batch, answers: Sequence[BatchAnswer]) -> None:
        """Record what the judge said, and what it cost."""
        receipts, queries = self._receipts(batch.planned.judge)
        receipts.record(
            (answer, queries.get(answer.query_key), batch.worst_usd_each)
            for answer in answers
            if isinstance(answer, Reply | NoReply)
        )

    def _receipts(self, reference: Reference) -> tuple[Receipts, Mapping[Digest, JudgeQuery]]:
        """Return what records a judge's answers, and the queries that it may have been sent."""
        if reference not in self._receipts_of:
            state, options = self._recorder.state, self._options
            judge = state.judges[reference]
            asked = everything_asked(self._recorder, state, judge).queries_in(state)
            self._receipts_of[reference] = (
                Receipts(self._recorder, judge, options.pricing_of(judge), options.tell),
                {query.query_key: query for query in asked},
            )
        return self._receipts_of[reference]


def _queries_of(recorder: Recorder, batch: Batch) -> tuple[Unanswered, ...]:
    """Return the queries of a batch, as of its plan."""
    judge = recorder.state.judges[batch.planned.judge]
    position = batch.recorded.position - 1
    before = recorder.as_of(position)
    open_before = everything_asked(recorder, before, judge, position).open_in(before)
    by_key = {query.asked.query_key: query for query in open_before}
    queries = tuple(by_key[key] for key in batch.planned.queries if key in by_key)
    if (n_unknown := len(batch.planned.queries) - len(queries)) > 0:
        raise TourneyError(
            f"{n_unknown} queries of the batch planned at position {batch.recorded.position} are"
            " unknown to this version of tourney; continue with the version that planned it"
        )
    return queries


def everything_asked(
    recorder: Recorder, state: Tournament, judge: JudgeSettings, position: int | None = None
) -> JudgeTask:
    """Return all that a judge could be asked, now or as of an earlier position."""
    evaluations, items = recorder.evaluations(position)
    scorers = Scorers(state.judges, state.rubrics)
    questions = score_questions(evaluations, items, evaluations.every.values(), scorers)
    to_judge = tuple(question for question in questions if question.judge == judge)
    prompts = [prompt.prompt_id for prompt in state.bank]
    sent = {key for batch in recorder.state.own_batches for key in batch.planned.queries}
    repeats = [
        query for query in repeats_of(state, prompts, judge) if query.asked.query_key in sent
    ]
    return JudgeTask(judge, prompts, ENDLESS_RETRIES, score_questions=to_judge, repeats=repeats)


def _lost_of(state: Tournament, request: Unanswered) -> Unanswered | None:
    """Return a request with the queries that have no result, after their last attempts."""
    lost: list[Unanswered] = [
        query._replace(n_failed=state.attempts[query.key])
        for query in request.every
        if _has_no_result(state, query.key)
    ]
    return one_request(lost)


def _has_no_result(state: Tournament, key: Digest) -> bool:
    failure = state.query_failures.get(key)
    is_lost = failure is not None and failure.fate == "perhaps billed"
    is_asked_again = key in state.in_flight or key in state.under_way
    return is_lost and not state.is_answered(key) and not is_asked_again
