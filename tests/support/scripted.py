"""Backends and a provider of batches that answer from a script, and can be made to fail."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from threading import Event
from typing import Final

from commands.asking.pool import Pool
from commands.errors import BatchGone, ProviderError, ResultsLost
from commands.ports import (
    Answer,
    BatchJudge,
    BatchResponder,
    BatchState,
    Billing,
    Console,
    Continuation,
    ContinuationLikelihood,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    Generator,
    Judge,
    LikelihoodFailure,
    LocalJudge,
    NoReply,
    Reply,
    key_of,
    no_progress,
)
from ledger.errors import TourneyError
from ledger.events.registration import Entrant, JudgeSettings
from ledger.events.requests import ParameterRefused
from ledger.store import utc_now
from projections.verdicts.queries import JudgeQuery, queries_digest
from tests.support.builders.clock import Clock


class ScriptedTerminal:
    """Keeps what was told and asked, and answers every question alike; None: there is nobody."""

    def __init__(self, answer: bool | None = None) -> None:
        self._answer = answer
        self.asked: list[str] = []
        self.told: list[str] = []

    @property
    def console(self) -> Console:
        """Itself, as a use case sees it."""
        confirm = None if self._answer is None else self._confirm
        return Console(self.told.append, confirm, no_progress)

    def _confirm(self, question: str) -> bool:
        self.asked.append(question)
        return bool(self._answer)


class ScriptedGenerator:
    """Answers by a function of the task; a failure is an answer too."""

    def __init__(
        self, answer: Callable[[GenerationTask], str | GenerationFailure], *, batch: int = 1
    ) -> None:
        self._answer = answer
        self._batch = batch
        self.asked: list[GenerationTask] = []

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield answers in the order of the tasks, a batch at a time."""
        for start in range(0, len(tasks), self._batch):
            batch = tasks[start : start + self._batch]
            self.asked += batch
            yield tuple(self._result(task) for task in batch)

    def _result(self, task: GenerationTask) -> GeneratedText | GenerationFailure:
        answer = self._answer(task)
        if isinstance(answer, GenerationFailure):
            return answer
        return GeneratedText(
            response_key=task.response_key,
            text=answer,
            finish_reason="stop",
            n_prompt_tokens=len(task.prompt_text.split()),
            n_generated_tokens=len(answer.split()),
            elapsed_s=0.0,
        )


class ScriptedReader:
    """Weighs texts by a function of the passage; its tokens are characters."""

    def __init__(
        self,
        weigh: Callable[[Continuation], float | LikelihoodFailure],
        *,
        predict: Callable[[Continuation], str] = lambda passage: passage.text,
        batch: int = 1,
    ) -> None:
        """Make a reader.

        Args:
            weigh: Gives the log-likelihood of a passage's text, or why there is none.
            predict: Gives the likeliest token in each place of a passage's text; rightly, if
                nothing else is said.
            batch: How many passages come at a time.
        """
        self._weigh = weigh
        self._predict = predict
        self._batch = batch
        self.asked: list[Continuation] = []

    def log_likelihoods(
        self, passages: Sequence[Continuation]
    ) -> Iterator[tuple[ContinuationLikelihood | LikelihoodFailure, ...]]:
        """Yield what was read in the order of the passages."""
        for start in range(0, len(passages), self._batch):
            batch = passages[start : start + self._batch]
            self.asked += batch
            yield tuple(self._result(passage) for passage in batch)

    def _result(self, passage: Continuation) -> ContinuationLikelihood | LikelihoodFailure:
        weight = self._weigh(passage)
        if isinstance(weight, LikelihoodFailure):
            return weight
        predicted = self._predict(passage)
        return ContinuationLikelihood(
            key=passage.key,
            log_likelihood=weight,
            context_ids=tuple(map(ord, passage.context)),
            text_ids=tuple(map(ord, passage.text)),
            predicted_ids=tuple(map(ord, predicted)),
            predicted=predicted if passage.shows_predicted else "",
        )


class ScriptedJudge:
    """Replies by a function of the query; None is silence."""

    def __init__(
        self, reply: Callable[[JudgeQuery], Answer | str | None], *, at_a_time: int = 4
    ) -> None:
        self._reply, self._at_a_time = reply, at_a_time
        self.asked: list[JudgeQuery] = []

    @property
    def n_together(self) -> int:
        """How many queries are asked together."""
        return self._at_a_time

    def answers(
        self,
        queries: Sequence[JudgeQuery],
        stops: Event,  # noqa: ARG002  # all are answered
    ) -> Iterator[tuple[Answer, ...]]:
        """Yield replies one by one, in the order of the queries."""
        for query in queries:
            self.asked.append(query)
            reply = self._reply(query)
            if reply is not None:
                yield (scripted_answer(reply, query),)


def answered(
    judge: Judge | LocalJudge, queries: Sequence[JudgeQuery], *, clock: Clock | None = None
) -> Iterator[Answer]:
    """Yield a judge's answers one by one, and raise as `judge_open` does; waiting takes no time."""
    if isinstance(judge, LocalJudge):
        for answers in judge.answers(queries, Event()) if queries else ():
            yield from answers
        return
    left, pace = deque(queries), (clock or Clock()).pace()
    with Pool[JudgeQuery, Reply](
        judge.host, judge.ask, key_of, stops=Event(), tell=lambda _: None, pace=pace
    ) as pool:
        for group in pool.settle_all(left, lambda n: [left.popleft() for _ in range(n)]):
            yield from (answer for _, answer in group)


def scripted_answer(said: Answer | str, query: JudgeQuery) -> Answer:
    """Return what a script says to a query; a text is a reply."""
    if not isinstance(said, str):
        return said
    return Reply(query.query_key, said, stop_reason="end_turn", model="scripted")


_LIFE: Final = timedelta(hours=24)


@dataclass
class _Batch:
    state: BatchState
    answers: tuple[Answer, ...]


class ScriptedBatchJudge:
    """Keeps batches in memory, whose answers are a function of the query."""

    def __init__(
        self,
        reply: Callable[[JudgeQuery], Answer | str],
        *,
        ends_at_once: bool = True,
        tells_queries: bool = False,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Make a judge.

        Args:
            reply: What is answered to a query.
            ends_at_once: Whether batches end as they are created; else `end` ends them.
            tells_queries: Whether a batch tells its queries before it has ended.
            now: The provider's clock.
        """
        self._reply = reply
        self._ends_at_once, self._tells_queries = ends_at_once, tells_queries
        self._now = now
        self._batches: dict[str, _Batch] = {}
        self._numbers = count(1)
        self._failures: list[tuple[TourneyError, bool]] = []
        self.counts = True  # False: it does not tell how many results there are
        self.asked: list[JudgeQuery] = []  # of all batches that were accepted

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Accept a batch, unless it is its turn to fail."""
        if not self._failures:
            return self._accepted(queries)
        error, accepts = self._failures.pop(0)
        if accepts:
            self._accepted(queries)
        raise error

    def now(self) -> datetime | None:
        """Return the time by the provider's clock."""
        return self._now()

    def retrieve(self, provider_batch_id: str) -> BatchState:
        """Return how a batch is doing."""
        return self._named(provider_batch_id).state

    def created_since(self, moment: datetime) -> Iterator[BatchState]:
        """Yield the batches created at or after a moment, the newest first."""
        for batch in reversed(self._batches.values()):
            if batch.state.created_at >= moment:
                yield batch.state

    def results(self, provider_batch_id: str) -> Iterator[Answer]:
        """Yield an ended batch's answers, the last query's first."""
        batch = self._named(provider_batch_id)
        if not batch.state.has_ended:
            raise ProviderError(f"batch {provider_batch_id} has not ended")
        if not batch.state.has_results:
            raise ResultsLost(provider_batch_id)
        yield from reversed(batch.answers)

    def cancel(self, provider_batch_id: str) -> BatchState:
        """Stop an open batch, before any of its queries is answered."""
        batch = self._named(provider_batch_id)
        if not batch.state.has_ended:
            keys = [answer.query_key for answer in batch.answers]
            self._end(batch, tuple(NoReply(key, "canceled", "canceled") for key in keys))
        return batch.state

    def n_bytes(self, query: JudgeQuery) -> int:
        """Return the size of a query in a batch."""
        return len(query.system.encode()) + len(query.user.encode())

    def end(self) -> None:
        """Let all open batches end now."""
        for batch in self._batches.values():
            if not batch.state.has_ended:
                self._end(batch, batch.answers)

    def fail_next(self, error: TourneyError, *, accepts: bool) -> None:
        """Let the next `create` raise, after the batch was accepted or in its place."""
        self._failures.append((error, accepts))

    def find_invalid(self, why: str) -> None:
        """Let all open batches end now, with nothing done."""
        for batch in self._batches.values():
            if not batch.state.has_ended:
                keys = [answer.query_key for answer in batch.answers]
                self._end(batch, tuple(NoReply(key, "errored", why) for key in keys))
                batch.state = replace(batch.state, failure=why)

    def lose_results(self, provider_batch_id: str) -> None:
        """Keep a batch's results no longer."""
        batch = self._named(provider_batch_id)
        batch.state = replace(batch.state, has_results=False)

    def find_results(self, provider_batch_id: str) -> None:
        """Keep a batch's results after all."""
        batch = self._named(provider_batch_id)
        batch.state = replace(batch.state, has_results=True)

    def delete(self, provider_batch_id: str) -> None:
        """Know a batch no more."""
        del self._batches[provider_batch_id]

    def _accepted(self, queries: Sequence[JudgeQuery]) -> BatchState:
        self.asked += queries
        now, name = self._now(), f"batch_{next(self._numbers)}"
        digest = queries_digest(query.query_key for query in queries)
        state = BatchState(
            name,
            now,
            now + _LIFE,
            has_ended=False,
            n_queries=len(queries),
            queries_digest=digest if self._tells_queries else None,
        )
        batch = _Batch(
            state, tuple(scripted_answer(self._reply(query), query) for query in queries)
        )
        self._batches[name] = batch
        if self._ends_at_once:
            self._end(batch, batch.answers)
        return state

    def _named(self, provider_batch_id: str) -> _Batch:
        if provider_batch_id not in self._batches:
            raise BatchGone(provider_batch_id)
        return self._batches[provider_batch_id]

    def _end(self, batch: _Batch, answers: tuple[Answer, ...]) -> None:
        reasons = [answer.reason for answer in answers if isinstance(answer, NoReply)]
        n_canceled, n_expired = reasons.count("canceled"), reasons.count("expired")
        batch.answers = answers
        batch.state = replace(
            batch.state,
            has_ended=True,
            n_results=len(answers) if self.counts else None,
            n_succeeded=len(answers) - len(reasons),
            n_errored=len(reasons) - n_canceled - n_expired,
            n_canceled=n_canceled,
            n_expired=n_expired,
        )


class ScriptedBackends:
    """Backends that answer from scripts; what has no script may not be asked."""

    def __init__(
        self,
        generator: Generator | Callable[[Billing], Generator] | None = None,
        judge: LocalJudge | None = None,
        batches: BatchJudge | None = None,
        responder: BatchResponder | None = None,
    ) -> None:
        self._generator, self._judge, self._batches = generator, judge, batches
        self._responder = responder

    def generator(self, billing: Billing) -> Generator:
        """Return the scripted generator."""
        assert self._generator is not None
        return self._generator(billing) if callable(self._generator) else self._generator

    def judge(
        self,
        judge: JudgeSettings,  # noqa: ARG002  # a port's signature
        refused: Sequence[ParameterRefused] = (),  # noqa: ARG002  # likewise
    ) -> LocalJudge:
        """Return the judge that answers at once, whoever is asked."""
        assert self._judge is not None
        return self._judge

    def batch_judge(
        self,
        judge: JudgeSettings,  # noqa: ARG002  # a port's signature
        refused: Sequence[ParameterRefused] = (),  # noqa: ARG002  # likewise
    ) -> BatchJudge:
        """Return the judge that answers in batches, whoever is asked."""
        assert self._batches is not None
        return self._batches

    def batch_responder(self, entrant: Entrant) -> BatchResponder:  # noqa: ARG002  # likewise
        """Return what responds in batches, whoever is asked."""
        assert self._responder is not None
        return self._responder
