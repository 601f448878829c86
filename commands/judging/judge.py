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
from commands.signals import stopping_gently
from commands.spending.budget import PriceUnknown, at_risk_usd, n_affordable
from commands.spending.endpoints import CredibleUsage, close_abandoned, learn_refused
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.errors import StaleVersion, TourneyError
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
    may_resend: Mapping[Digest, int] = field(default_factory=dict)
    """Of queries that were perhaps billed, the last attempt after which they may be sent again."""
    score_questions: Sequence[ScoreQuestion] = ()  # on answers of evaluations
    only: remaining.WhichPairs = None
    repeats: Sequence[remaining.OpenQuery] = ()  # asked again, to see whether verdicts change

    @property
    def wanted(self) -> str:
        """What a reply should hold."""
        return "score" if self.score_questions else "verdict"

    def open_in(self, state: Tournament) -> tuple[remaining.Unanswered, ...]:
        """Return its queries that are open; those that failed come last, as they may again."""
        pairs = remaining.open_queries(
            state, self.prompts, self.judge, self.retries, only=self.only
        )
        scores = remaining.open_scores(state, self.score_questions, self.retries)
        repeats = remaining.open_repeats(state, self.repeats, self.retries)
        return tuple(sorted((*pairs, *scores, *repeats), key=lambda query: query.n_failed))

    def queries_in(self, state: Tournament) -> Iterator[JudgeQuery]:
        """Yield all its queries, open or not."""
        yield from queries_to(state, self.prompts, self.judge)
        yield from (question.asked for question in self.score_questions)
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
    try:
        if chosen := queries[: task.limit]:
            judge = judge_of(task.judge, recorder.state.refused_parameters)
            with stopping_gently(tell) as stops:
                _DirectJudging(recorder, task, on_progress, tell, stops).ask(judge, chosen)
    except (TourneyError, KeyboardInterrupt):
        reconcile(recorder, task)
        raise
    return concluded(recorder, task, queries)


class _DirectJudging:
    """Sends queries to one judge and waits for the answers."""

    def __init__(
        self,
        recorder: Recorder,
        task: JudgeTask,
        on_progress: OnProgress,
        tell: Tell,
        stops: Event,
    ) -> None:
        self._recorder, self._task = recorder, task
        self._on_progress, self._tell, self._stops = on_progress, tell, stops
        self._receipts = Receipts(recorder, task.judge, task.pricing, tell)
        self._brake = ReadingBrake(task.judge, task.wanted)
        self._waiting: deque[remaining.Unanswered] = deque()
        self._submitted: dict[Digest, SubmitQuery] = {}  # the last of each request
        self._cap_reached: Refused | None = None
        self._nothing_readable: NothingReadable | None = None
        self._phase, self._n_done, self._n_queries = "", 0, 0

    def ask(self, judge: Judge | LocalJudge, chosen: Sequence[remaining.Unanswered]) -> None:
        """Send queries, and retry those without a verdict as often as is set."""
        if isinstance(judge, LocalJudge):
            self._ask_in_attempts(judge, chosen)
            return
        key_of = attrgetter("query_key")
        with Pool[JudgeQuery, Reply](
            judge.host, judge.ask, key_of, stops=self._stops, tell=self._tell
        ) as pool:
            self._ask_in_attempts(pool, chosen)

    def _ask_in_attempts(
        self, asked: LocalJudge | Pool[JudgeQuery, Reply], chosen: Sequence[remaining.Unanswered]
    ) -> None:
        for attempt in range(1, self._task.retries + 2):
            self._waiting = deque(still_open(self._recorder.state, self._task, chosen))
            self._phase = f"{self._task.wanted}s" + (f", attempt {attempt}" if attempt > 1 else "")
            self._n_done, self._n_queries = 0, len(self._waiting)
            self._cap_reached = None
            for answers in self._answers(asked):
                self._record(answers)
            self._raise_if_stopped()

    def _answers(self, asked: LocalJudge | Pool[JudgeQuery, Reply]) -> Iterator[Sequence[Answer]]:
        """Submit what waits; yield the answers in groups, to be recorded before more is sent."""
        if isinstance(asked, Pool):
            for group in asked.settle_all(self._waiting, self._submit):
                yield [answer for _, answer in group]
            return
        while queries := self._submit(asked.n_together):
            yield from asked.answers(queries, self._stops)

    def _raise_if_stopped(self) -> None:
        if self._nothing_readable is not None:
            raise self._nothing_readable
        if self._stops.is_set():
            raise KeyboardInterrupt
        if self._cap_reached is not None:
            raise self._cap_reached

    def _submit(self, n_at_most: int) -> Sequence[JudgeQuery]:
        """Return the next queries, recorded as sent; none if none may be sent now."""
        while self._waiting and not self._stops.is_set():
            n_next = min(n_at_most, len(self._waiting))
            next_ones = [self._waiting.popleft() for _ in range(n_next)]
            queries = still_open(self._recorder.state, self._task, next_ones)
            n_sent = 0
            try:
                n_sent = self._record_as_sent(queries) if queries else 0
                self._cap_reached = None
            except Refused as cap_reached:
                self._cap_reached = cap_reached
                return ()
            except StaleVersion:  # a merge came first, and may have answered some: look again
                n_sent = 0
            finally:
                self._waiting.extendleft(reversed(queries[n_sent:]))
            if n_sent:
                return [query.asked for query in queries[:n_sent]]
        return ()

    def _record_as_sent(self, queries: Sequence[remaining.Unanswered]) -> int:
        """Record as many of the first queries as the cap allows as sent; return how many.

        Raises:
            Refused: The cap allows none.
            StaleVersion: Somebody else wrote to the tournament; nothing was recorded.
        """
        judge_id, pricing = self._task.judge.judge_id, self._task.pricing
        submissions = [
            SubmitQuery(judge_id, query, pricing.worst_usd([query.asked]))
            for query in affordable(self._recorder.state, self._task, queries)
        ]
        self._recorder.record(*submissions)
        self._submitted |= {
            submission.query.asked.query_key: submission for submission in submissions
        }
        return len(submissions)

    def _record(self, answers: Sequence[Answer]) -> None:
        """Record answers, and let queries wait that are to be asked again.

        That is at once for an unreadable reply: where all are, not every query is asked. It is
        later where the server was busy.
        """
        if not answers:
            return
        self._receipts.record(map(self._with_price, answers))
        queries = [(answer, self._submitted[answer.query_key].query) for answer in answers]
        replied = [query for answer, query in queries if isinstance(answer, Reply)]
        busy = [
            query
            for answer, query in queries
            if isinstance(answer, NoReply) and answer.then == "wait"
        ]
        unread = still_open(self._recorder.state, self._task, replied)
        self._waiting.extendleft(reversed(unread))
        self._let_resend(busy)
        self._waiting.extend(busy)
        self._brake_if_unreadable([query.asked.query_key for query in replied])
        self._n_done += len(replied)  # a request that failed is no progress
        self._n_queries += len(unread)
        self._on_progress(self._phase, self._n_done, self._n_queries)

    def _with_price(self, answer: Answer) -> tuple[Answer, JudgeQuery | None, float | None]:
        """Return an answer with its query and worst cost; recording refuses an unknown one."""
        submission = self._submitted.get(answer.query_key)
        if submission is None:
            return answer, None, None
        return answer, submission.query.asked, submission.worst_usd

    def _let_resend(self, busy: Sequence[remaining.Unanswered]) -> None:
        """Let requests be sent again, though a busy server may have billed them."""
        failures = self._recorder.state.query_failures
        keys = (query.key for request in busy for query in request.every)
        attempts = {key: failures[key].attempt for key in keys if key in failures}
        self._task = replace(self._task, may_resend={**self._task.may_resend, **attempts})

    def _brake_if_unreadable(self, replied: Sequence[Digest]) -> None:
        self._brake.note(self._recorder.state, replied)
        if self._waiting and self._nothing_readable is None:
            self._nothing_readable = self._brake.why_stop()
        if self._nothing_readable is not None:
            self._stops.set()


def resumed(recorder: Recorder, task: JudgeTask) -> JudgeTask:
    """Close the requests of processes that died, and return the task of a command that begins.

    It may send again what was perhaps billed until now, but not what is perhaps billed from now on.
    """
    close_abandoned(recorder)
    failures = recorder.state.query_failures
    attempts = {
        key: failure.attempt
        for key, failure in failures.items()
        if failure.fate == "perhaps billed"
    }
    return replace(task, may_resend=attempts)


def still_open(
    state: Tournament, task: JudgeTask, queries: Iterable[remaining.Unanswered]
) -> tuple[remaining.Unanswered, ...]:
    """Return the queries of a task that are still open: a merge may bring verdicts meanwhile.

    A query that was perhaps billed since the command began is left to another command: nobody
    pays twice without being told.
    """
    refreshed = (remaining.refreshed_query(state, query, task.retries) for query in queries)
    return tuple(
        query
        for query in refreshed
        if query is not None and all(_may_send(state, task, part.key) for part in query.every)
    )


def _may_send(state: Tournament, task: JudgeTask, key: Digest) -> bool:
    failure = state.query_failures.get(key)
    if failure is None or failure.fate != "perhaps billed":
        return True
    return failure.attempt == task.may_resend.get(key)


def affordable(
    state: Tournament, task: JudgeTask, queries: Sequence[remaining.Unanswered]
) -> Sequence[remaining.Unanswered]:
    """Return as many of the first queries as the cap allows in the worst case.

    Raises:
        BudgetReached: Not even the first is affordable.
        Refused: No cap can be kept.
    """
    if task.max_usd is None:
        return queries
    bound_usd = state.spent_usd + task.spent_elsewhere_usd + at_risk_usd(state)
    worst_usd = [task.pricing.worst_usd([query.asked]) for query in queries]
    known_usd = [usd for usd in worst_usd if usd is not None]
    if len(known_usd) < len(worst_usd):
        raise PriceUnknown(task.judge.model)
    return queries[: n_affordable(known_usd, cap_usd=task.max_usd, bound_usd=bound_usd)]


def reconcile(recorder: Recorder, task: JudgeTask) -> int:
    """Reconcile every pair of a task that can be; return how many were."""
    matches = remaining.unreconciled(recorder.state, task.prompts, task.judge)
    return recorder.record(*(ReconcilePair(task.judge.judge_id, match) for match in matches))


def concluded(
    recorder: Recorder, task: JudgeTask, queries: Sequence[remaining.Unanswered]
) -> JudgingSummary:
    """Reconcile, and return what became of the queries that were open before."""
    n_reconciled = reconcile(recorder, task)
    is_answered, sent = recorder.state.is_answered, queries[: task.limit]
    n_verdicts = sum(all(is_answered(part.key) for part in query.every) for query in sent)
    return JudgingSummary(len(queries), n_verdicts, len(sent) - n_verdicts, n_reconciled)


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
