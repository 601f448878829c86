"""A provider of batches that answers from a script, and can be made to fail."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from commands.errors import BatchGone, ProviderError, ResultsLost
from commands.ports import Answer, BatchState, NoReply
from ledger.errors import TourneyError
from ledger.store import utc_now
from projections.verdicts.queries import JudgeQuery
from tests.support.scripted import scripted_answer

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
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Make a judge.

        Args:
            reply: What is answered to a query.
            ends_at_once: Whether batches end as they are created; else `end` ends them.
            now: The provider's clock.
        """
        self._reply = reply
        self._ends_at_once = ends_at_once
        self._now = now
        self._batches: dict[str, _Batch] = {}
        self._numbers = count(1)
        self._failures: list[tuple[TourneyError, bool]] = []
        self.asked: list[JudgeQuery] = []  # of all batches that were accepted

    def create(self, queries: Sequence[JudgeQuery]) -> BatchState:
        """Accept a batch, unless it is its turn to fail."""
        if not self._failures:
            return self._accepted(queries)
        error, accepts = self._failures.pop(0)
        if accepts:
            self._accepted(queries)
        raise error

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
            raise ResultsLost(f"the results of batch {provider_batch_id} are gone")
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

    def lose_results(self, provider_batch_id: str) -> None:
        """Keep a batch's results no longer."""
        batch = self._named(provider_batch_id)
        batch.state = replace(batch.state, has_results=False)

    def delete(self, provider_batch_id: str) -> None:
        """Know a batch no more."""
        del self._batches[provider_batch_id]

    def _accepted(self, queries: Sequence[JudgeQuery]) -> BatchState:
        self.asked += queries
        now, name = self._now(), f"batch_{next(self._numbers)}"
        state = BatchState(name, now, now + _LIFE, has_ended=False, n_queries=len(queries))
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
            n_succeeded=len(answers) - len(reasons),
            n_errored=len(reasons) - n_canceled - n_expired,
            n_canceled=n_canceled,
            n_expired=n_expired,
        )
