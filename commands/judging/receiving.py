"""Use case: receive batches, or forget a lost one.

A batch is polled until it has ended; all its results are recorded before its end is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from commands.decisions.commands import EndBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchGone,
    BatchRefused,
    NotFound,
    ProviderError,
    ResultsLost,
    WorkInFlight,
    counted,
)
from commands.judging.judge import answer_command
from commands.judging.recovery import BatchOptions, port_for, resolve_batches
from commands.ports import Answer, BatchJudge, BatchJudgeOf, BatchState, NoReply, Reply
from ledger.events.judging import JudgeBatchSubmitted
from projections.tournament.batches import Batch

_GROUP: Final = 100  # answers in one transaction


def forget_batch(recorder: Recorder, port_of: BatchJudgeOf, provider_batch_id: str) -> None:
    """Close a batch whose results the provider no longer has; its queries are open again.

    Raises:
        NotFound: No batch with that id is in flight, or it can still be received.
    """
    for batch in recorder.state.open_batches:
        if batch.submitted and batch.submitted.provider_batch_id == provider_batch_id:
            port = port_for(recorder.state, batch, port_of)
            recorder.record(EndBatch(batch.planned.batch_key, _gone(batch.submitted, port)))
            return
    raise NotFound(f"no batch {provider_batch_id!r} is in flight; see `tourney batch list`")


def _gone(submitted: JudgeBatchSubmitted, port: BatchJudge) -> BatchState:
    """Return the final status of a lost batch, after checking that it is lost."""
    name = submitted.provider_batch_id
    try:
        state = port.retrieve(name)
    except BatchGone:
        return BatchState(
            name, submitted.created_at, submitted.expires_at, has_ended=True, n_queries=0
        )
    if state.has_results:
        raise NotFound(
            f"{name} can still be received: `tourney batch wait` receives it, `cancel` stops it"
        )
    return state


class BatchReceiver:
    """Receives one tournament's batches from their providers, whichever process sent them."""

    def __init__(self, recorder: Recorder, port_of: BatchJudgeOf, options: BatchOptions) -> None:
        self._recorder, self._port_of, self._options = recorder, port_of, options
        self._n_received = 0
        self._why_not = ""  # the provider's last error of a query
        self._why_none = ""  # its last error that is not of a query

    def receive_all(self) -> None:
        """Resolve batches of unknown fate and receive those in flight; send nothing.

        Raises:
            WorkInFlight: Batches go on, and the command does not wait.
            ProviderError: The provider fails.
        """
        while self._recorder.state.open_batches:
            self.receive_some()

    def receive_some(self) -> None:
        """Resolve batches of unknown fate, wait until one has ended, and receive all that have.

        Raises:
            WorkInFlight: None has ended, and the command does not wait.
            BatchGone: The provider no longer has a batch; all that have ended are received.
        """
        resolve_batches(self._recorder, self._port_of, self._options)
        for delay_s in self._options.polling.delays_s():
            gone: list[BatchGone] = []
            statuses = [*self._statuses(gone)]
            ended = [(batch, state) for batch, state in statuses if state.has_ended]
            for batch, state in ended:
                self._receive(batch, state)
            if ended or not (statuses or gone):
                return
            if gone:
                raise gone[0]
            if not self._options.polling.waits:
                raise WorkInFlight(self._in_flight())
            self._options.polling.sleep(delay_s)

    def _statuses(self, gone: list[BatchGone]) -> Iterator[tuple[Batch, BatchState]]:
        """Yield the status of each batch; those that the provider no longer has go into `gone`."""
        for batch in self._recorder.state.open_batches:
            if batch.submitted is None:  # a merge added it: it is resolved next time
                continue
            try:
                yield batch, self._port(batch).retrieve(batch.submitted.provider_batch_id)
            except BatchGone as error:
                gone.append(error)

    def _port(self, batch: Batch) -> BatchJudge:
        return port_for(self._recorder.state, batch, self._port_of)

    def _in_flight(self) -> str:
        batches = self._recorder.state.open_batches
        queries = counted(sum(len(batch.planned.queries) for batch in batches), "query", "queries")
        return (
            f"{queries} in {counted(len(batches), 'batch', 'batches')} with the provider;"
            " `tourney batch wait` receives them"
        )

    def _receive(self, batch: Batch, state: BatchState) -> None:
        """Record every answer of an ended batch, and its end.

        Raises:
            BatchRefused: The provider found it invalid, as it would find the next one.
        """
        try:
            self._read(batch, state)
        except ResultsLost as lost:
            self._options.tell(f"{lost.why}: its queries are open again")
        self._recorder.record(EndBatch(batch.planned.batch_key, state))
        if state.failure is not None:
            why = f"batch {state.provider_batch_id} was found invalid, and is not billed"
            raise BatchRefused(f"{why}: {state.failure}")
        if self._why_not:
            self._options.tell(f"the last error: {self._why_not}")
        self._options.tell(
            f"batch {state.provider_batch_id} ended: {state.n_succeeded} answered,"
            f" {state.n_queries - state.n_succeeded} not"
        )
        if self._why_none:
            raise ProviderError(
                f"queries of batch {state.provider_batch_id} failed for a reason that is not"
                f" theirs: {self._why_none}; correct the account or the settings: they stay open"
            )

    def _read(self, batch: Batch, state: BatchState) -> None:
        """Record a batch's answers as they are read.

        Raises:
            ProviderError: Results are missing; the batch stays open, so nothing is asked again.
        """
        missing = set(batch.planned.queries)
        answers = self._port(batch).results(state.provider_batch_id)
        while group := tuple(islice(answers, _GROUP)):
            news = [answer for answer in group if answer.query_key in missing]
            self._record(batch, [self._blamed(answer, state) for answer in news])
            n_missing = len(missing)
            missing.difference_update(answer.query_key for answer in group)
            self._n_received += n_missing - len(missing)
            self._tell_progress(batch, len(missing))
        if missing:
            raise ProviderError(
                f"batch {state.provider_batch_id} has ended, and the provider gave no result for"
                f" {len(missing)} of its {len(batch.planned.queries)} queries"
            )

    def _tell_progress(self, batch: Batch, n_missing: int) -> None:
        """Report the replies received, out of those and the ones still in flight."""
        others = sum(
            len(each.planned.queries)
            for each in self._recorder.state.open_batches
            if each.planned.batch_key != batch.planned.batch_key
        )
        n_received = self._n_received
        self._options.on_progress("replies", n_received, n_received + n_missing + others)

    def _blamed(self, answer: Answer, state: BatchState) -> Answer:
        """Return an answer; a rejection is not the query's fault if no query succeeded."""
        if isinstance(answer, Reply):
            return answer
        if answer.reason == "rejected" and state.n_errored == state.n_queries > 1:
            answer = replace(answer, reason="errored", is_of_all=True)
        if answer.is_of_all:
            self._why_none = answer.detail
        return answer

    def _record(self, batch: Batch, answers: Sequence[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, NoReply):
                self._why_not = answer.detail
        judge = self._recorder.state.judges[batch.planned.judge]
        pricing = self._options.pricing_of(judge)
        distinct = {answer.query_key: answer for answer in answers}
        worst_usd = batch.worst_usd_each
        self._recorder.record(
            *(answer_command(judge, each, pricing, worst_usd) for each in distinct.values())
        )
