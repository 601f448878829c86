"""Use case: send open queries to a judge, record each answer, and reconcile the pairs.

A query asks for a verdict on a pair, or for the score of an answer of an evaluation. Judging in
batches shares the task, the cap and the reconciliation.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from threading import Event
from typing import NamedTuple

from commands.asking.pool import Pool
from commands.decisions.commands import ReceiveAnswer, ReconcilePair, SubmitQuery
from commands.decisions.recorder import Recorder
from commands.errors import NothingReadable, Refused
from commands.judging.unreadable import ReadingBrake
from commands.ports import (
    Answer,
    Judge,
    JudgeOf,
    LocalJudge,
    NoReply,
    OnProgress,
    Reply,
    Tell,
)
from commands.spending.billing import CredibleUsage, close_abandoned, learn_refused
from commands.spending.budget import PriceUnknown, at_risk_usd, n_affordable
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from commands.spending.signals import stopping_gently
from ledger.errors import StaleVersion, TourneyError
from ledger.events.judging import JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId
from projections.tournament import remaining
from projections.tournament.estimate import n_input_at_most
from projections.tournament.matches import keys_of, queries_to
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery
from projections.verdicts.scoring import ScoreQuestion


@dataclass(frozen=True)
class JudgeTask:
    """The judge, what it is asked about, the retries, and the cap of one judging command."""

    judge: JudgeSettings
    prompts: Collection[PromptId]  # whose pairs are compared
    retries: int  # of a reply that says no verdict
    pricing: Pricing = FREE_OF_CHARGE
    max_usd: float | None = None  # None: no cap
    spent_elsewhere_usd: float = 0.0  # on endpoint entrants, if the cap covers them, too
    limit: int | None = None  # most queries to send now
    lost_before: Mapping[Digest, int] = field(default_factory=dict)  # see `begun_again`
    answers: Sequence[ScoreQuestion] = ()  # of evaluations, to be scored
    only: remaining.WhichPairs = None
    repeats: Sequence[remaining.OpenQuery] = ()  # asked again, to see whether verdicts change

    @property
    def wanted(self) -> str:
        """What a reply should hold."""
        return "score" if self.answers else "verdict"

    def open_in(self, state: Tournament) -> tuple[remaining.Unanswered, ...]:
        """Return its queries that are open; those that failed come last, as they may again."""
        pairs = remaining.open_queries(
            state, self.prompts, self.judge, self.retries, only=self.only
        )
        scores = remaining.open_scores(state, self.answers, self.retries)
        repeats = remaining.open_repeats(state, self.repeats, self.retries)
        return tuple(sorted((*pairs, *scores, *repeats), key=lambda each: each.n_failed))

    def queries_in(self, state: Tournament) -> Iterator[JudgeQuery]:
        """Yield all its queries, open or not."""
        yield from queries_to(state, self.prompts, self.judge)
        yield from (answer.asked for answer in self.answers)
        yield from (repeat.asked for repeat in self.repeats)

    def keys_in(self, state: Tournament) -> Iterator[Digest]:
        """Yield the keys of all its queries, open or not, and of requests that have several."""
        yield from (query.query_key for query in self.queries_in(state))
        if self.judge.is_together:
            yield from keys_of(state, self.prompts, self.judge)
            yield from (query.key for repeat in self.repeats for query in repeat.every)


class JudgingSummary(NamedTuple):
    """How many requests were open before, and what became of them."""

    n_open: int
    n_verdicts: int  # or scores
    n_failed: int  # sent now, and without a verdict or a score at the end
    n_reconciled: int

    @property
    def n_asked(self) -> int:
        """How many queries were sent now."""
        return self.n_verdicts + self.n_failed

    def plus(self, other: "JudgingSummary") -> "JudgingSummary":
        """Return what was judged in both."""
        return JudgingSummary(*map(sum, zip(self, other, strict=True)))


def judge_open(
    recorder: Recorder,
    task: JudgeTask,
    judge_of: JudgeOf,
    *,
    on_progress: OnProgress,
    tell: Tell = lambda _: None,
) -> JudgingSummary:
    """Ask for every missing verdict or score; a query whose reply has none is retried.

    Ctrl-C sends nothing more, and records the answers to what is under way; a second one leaves.

    Args:
        recorder: The tournament.
        task: What is judged.
        judge_of: Returns the judge, once it is needed.
        on_progress: Called with the number of answers so far.
        tell: Reports long waits.

    Raises:
        Refused: The next queries might exceed the cap; all answers are recorded.
        NothingReadable: Reply after reply holds no verdict or score; all are recorded.
        ProviderError: The judge fails, or leaves request after request unanswered.
        ConfigurationError: The server does not have the model, or does not know a setting.
        NoCredentials: The server refuses the key.
    """
    queries = task.open_in(recorder.state)
    judging = Judging(recorder, task)
    try:
        if asked := queries[: task.limit]:
            judge = judge_of(task.judge, recorder.state.refused_parameters)
            with stopping_gently(tell) as stops:
                _DirectJudging(recorder, task, on_progress, tell, stops).ask(judge, asked)
    except (TourneyError, KeyboardInterrupt):
        judging.reconcile()
        raise
    return judging.concluded(queries)


def begun_again(recorder: Recorder, task: JudgeTask) -> JudgeTask:
    """Close what processes that died left, and return the task of a command that begins.

    It may send again what was perhaps billed until now, and not what is lost from now on.
    """
    close_abandoned(recorder)
    failures = recorder.state.query_failures
    lost = {key: failure.attempt for key, failure in failures.items() if is_lost(failure)}
    return replace(task, lost_before=lost)


def is_lost(failure: JudgeQueryFailed | None, attempt_before: int | None = None) -> bool:
    """Say whether a request was perhaps billed, other than that of an earlier attempt."""
    if failure is None or failure.fate != "perhaps billed":
        return False
    return failure.attempt != attempt_before


class Judging:
    """What a task still asks, and its end: the same one by one and in batches."""

    def __init__(self, recorder: Recorder, task: JudgeTask) -> None:
        """Take the tournament and the task."""
        self._recorder, self._task = recorder, task

    def still_open(
        self, queries: Iterable[remaining.Unanswered], /
    ) -> tuple[remaining.Unanswered, ...]:
        """Return the queries that are still open: a merge may bring verdicts meanwhile.

        A query that was perhaps billed since the command began is left to another command: nobody
        pays twice without being told.
        """
        state, task = self._recorder.state, self._task
        lost, before = state.query_failures, task.lost_before
        now = (remaining.refreshed_query(state, query, task.retries) for query in queries)
        return tuple(
            query
            for query in now
            if query is not None
            and not any(is_lost(lost.get(each.key), before.get(each.key)) for each in query.every)
        )

    def affordable(
        self, queries: Sequence[remaining.Unanswered], /
    ) -> Sequence[remaining.Unanswered]:
        """Return as many of the first queries as the cap allows in the worst case.

        Raises:
            BudgetReached: Not even the first is affordable.
            Refused: No cap can be kept.
        """
        state, task = self._recorder.state, self._task
        if task.max_usd is None:
            return queries
        bound_usd = state.spent_usd + task.spent_elsewhere_usd + at_risk_usd(state)
        worst_usd = [task.pricing.worst_usd([query.asked]) for query in queries]
        known_usd = [usd for usd in worst_usd if usd is not None]
        if len(known_usd) < len(worst_usd):
            raise PriceUnknown(task.judge.model)
        return queries[: n_affordable(known_usd, cap_usd=task.max_usd, bound_usd=bound_usd)]

    def reconcile(self) -> int:
        """Reconcile every pair that can be; return how many were."""
        state, task = self._recorder.state, self._task
        matches = remaining.unreconciled(state, task.prompts, task.judge)
        return self._recorder.record(
            *(ReconcilePair(task.judge.judge_id, match) for match in matches)
        )

    def concluded(self, queries: Sequence[remaining.Unanswered]) -> JudgingSummary:
        """Reconcile, and return what became of the queries that were open before."""
        n_reconciled = self.reconcile()
        is_answered, asked = self._recorder.state.is_answered, queries[: self._task.limit]
        n_verdicts = sum(all(is_answered(query.key) for query in each.every) for each in asked)
        return JudgingSummary(len(queries), n_verdicts, len(asked) - n_verdicts, n_reconciled)


class _DirectJudging(Judging):
    """Sends queries to one judge and waits for the answers."""

    def __init__(
        self,
        recorder: Recorder,
        task: JudgeTask,
        on_progress: OnProgress,
        tell: Tell,
        stops: Event,
    ) -> None:
        self._lost = dict(task.lost_before)  # what may be sent again although it was perhaps billed
        super().__init__(recorder, replace(task, lost_before=self._lost))
        self._on_progress, self._tell, self._stops = on_progress, tell, stops
        self._receipts = Receipts(recorder, task.judge, task.pricing, tell)
        self._remaining: deque[remaining.Unanswered] = deque()
        self._sent: dict[Digest, SubmitQuery] = {}  # the last of each query
        self._phase, self._n_done, self._n_queries = "", 0, 0
        self._stopped_by: Refused | None = None
        self._brake = ReadingBrake(task.judge, task.wanted)
        self._unreadable: NothingReadable | None = None

    def ask(self, judge: Judge | LocalJudge, chosen: Sequence[remaining.Unanswered]) -> None:
        """Send queries, and retry those without a verdict as often as is set.

        An unreadable reply is asked for again at once: where all are, not every query is asked.
        """
        if isinstance(judge, LocalJudge):
            for _ in self._attempts(chosen):
                while queries := self._submit(judge.n_together):
                    for answers in judge.answers(queries, self._stops):
                        self._record(answers)
            return
        key_of = attrgetter("query_key")
        with Pool[JudgeQuery, Reply](
            judge.host, judge.ask, key_of, stops=self._stops, tell=self._tell
        ) as pool:
            for _ in self._attempts(chosen):
                for group in pool.settle_all(self._remaining, self._submit):
                    self._record([settled.answer for settled in group])

    def _attempts(self, chosen: Sequence[remaining.Unanswered]) -> Iterator[None]:
        """Yield once the queries of an attempt wait; then raise what ended it, if anything did."""
        for attempt in range(1, self._task.retries + 2):
            self._remaining = deque(self.still_open(chosen))
            self._phase = f"{self._task.wanted}s" + (f", attempt {attempt}" if attempt > 1 else "")
            self._n_done, self._n_queries = 0, len(self._remaining)
            self._stopped_by = None
            yield
            if self._unreadable is not None:
                raise self._unreadable
            if self._stops.is_set():
                raise KeyboardInterrupt
            if self._stopped_by is not None:
                raise self._stopped_by

    def _submit(self, n_at_most: int) -> Sequence[JudgeQuery]:
        """Return the next queries, recorded as sent; none if none may be sent now."""
        while self._remaining and not self._stops.is_set():
            few = [self._remaining.popleft() for _ in range(min(n_at_most, len(self._remaining)))]
            wanted = self.still_open(few)
            chunk: Sequence[remaining.Unanswered] = ()
            try:
                chunk = self.affordable(wanted) if wanted else ()
                self._record_intent(chunk)
                self._stopped_by = None
            except Refused as stop:
                self._stopped_by = stop
                return ()
            except StaleVersion:  # a merge came first, and may have answered some
                chunk = ()
            finally:
                self._remaining.extendleft(reversed(wanted[len(chunk) :]))
            if chunk:
                return [query.asked for query in chunk]
        return ()

    def _record_intent(self, chunk: Sequence[remaining.Unanswered]) -> None:
        judge, pricing = self._task.judge.judge_id, self._task.pricing
        submissions = [
            SubmitQuery(judge, query, pricing.worst_usd([query.asked])) for query in chunk
        ]
        self._recorder.record(*submissions)
        self._sent |= {submission.query.asked.query_key: submission for submission in submissions}

    def _record(self, answers: Sequence[Answer]) -> None:
        """Record answers, and let queries wait that are to be asked again.

        That is at once for an unreadable reply, and later where the server was busy.
        """
        if not answers:
            return
        submitted = ((answer, self._sent.get(answer.query_key)) for answer in answers)
        self._receipts.record(
            (answer, sent.query.asked, sent.worst_usd) if sent else (answer, None, None)
            for answer, sent in submitted
        )
        state = self._recorder.state
        replied = [answer.query_key for answer in answers if isinstance(answer, Reply)]
        again = self.still_open(self._sent[key].query for key in replied)
        self._remaining.extendleft(reversed(again))
        busy = [
            answer.query_key
            for answer in answers
            if isinstance(answer, NoReply) and answer.then == "wait"
        ]
        failures = state.query_failures
        self._lost.update(
            (key, failures[key].attempt)
            for request in busy
            for key in state.queries_in(request)
            if key in failures
        )
        self._remaining.extend(self._sent[key].query for key in busy)
        self._brake_if_unreadable(replied)
        self._n_done += len(answers)
        self._n_queries += len(again) + len(busy)
        self._on_progress(self._phase, self._n_done, self._n_queries)

    def _brake_if_unreadable(self, replied: Sequence[Digest]) -> None:
        self._brake.note(self._recorder.state, replied)
        if self._remaining and self._unreadable is None:
            self._unreadable = self._brake.why_stop()
        if self._unreadable is not None:
            self._stops.set()


class Receipts:
    """Records the answers of one judge, to single requests and in batches alike."""

    def __init__(
        self, recorder: Recorder, judge: JudgeSettings, pricing: Pricing, tell: Tell
    ) -> None:
        self._recorder, self._judge, self._pricing, self._tell = recorder, judge, pricing, tell
        self._credible = CredibleUsage(f"judge {judge.judge_id!r}", tell)

    def record(self, answers: Iterable[tuple[Answer, JudgeQuery | None, float | None]]) -> None:
        """Record answers, with their prices.

        Args:
            answers: Each with its query, if it is known, and with what it costs at worst.
        """
        answers = tuple(answers)
        if refused := [parameter for answer, *_ in answers for parameter in answer.refused]:
            learn_refused(self._recorder, refused, self._tell)
        self._recorder.record(*(self.receipt(*answer) for answer in answers))

    def receipt(
        self, answer: Answer, query: JudgeQuery | None, worst_usd: float | None
    ) -> ReceiveAnswer:
        """Return the command that records an answer; tokens that cannot be are left out."""
        if not isinstance(answer, Reply) or answer.usage is None:
            return ReceiveAnswer(self._judge, answer, None, worst_usd)
        n_input = None if query is None else n_input_at_most(query, self._judge)
        if not self._credible.is_credible(answer.usage, n_input, self._judge.max_tokens):
            unpriced = replace(answer, usage=None)
            return ReceiveAnswer(self._judge, unpriced, None, worst_usd)
        price = self._pricing.price_of(answer.usage)
        return ReceiveAnswer(self._judge, answer, price, worst_usd)
