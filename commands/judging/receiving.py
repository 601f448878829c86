"""Use case: receive batches.

A batch is polled until it has ended; all its results are recorded before its end is. Until as many
were read as the provider counts, it is polled: what was not read is paid for all the same.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from commands.decisions.commands import EndBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchGone,
    BatchRefused,
    NotAnswering,
    ProviderError,
    ResultsLost,
    WorkInFlight,
    counted,
)
from commands.judging.batch_recovery import (
    FateUnknown,
    everything_asked,
    now_at,
    port_for,
    resolve_batch,
)
from commands.judging.judge import Receipts
from commands.judging.waiting import BatchOptions, Watch
from commands.ports import Answer, BatchJudge, BatchJudgeOf, BatchState, NoReply, Reply
from ledger.errors import TourneyError
from ledger.events.registration import Reference
from ledger.identity import Digest
from projections.tournament.batches import Batch
from projections.verdicts.queries import JudgeQuery

_GROUP: Final = 100  # answers in one transaction


class BatchReceiver:
    """Receives one tournament's batches from their providers, whichever process sent them."""

    def __init__(self, recorder: Recorder, port_of: BatchJudgeOf, options: BatchOptions) -> None:
        self._recorder, self.port_of, self.options = recorder, port_of, options
        self._watch = Watch(options)
        # batches of unknown fate, by the provider's clock and by ours, which either may stand
        self._sought_since: dict[Digest, tuple[datetime, datetime]] = {}
        self._received: Counter[Digest] = Counter()  # answers by batch
        self.n_other_form: Counter[Digest] = Counter()  # of a query: asked again in another form
        self._ended: list[Digest] = []
        self._receipts_of: dict[Reference, tuple[Receipts, Mapping[Digest, JudgeQuery]]] = {}
        self._why_not = ""  # the provider's last error of a query of the batch that is received
        self._why_none = ""  # its last error that is not of a query

    @property
    def ended(self) -> Sequence[Digest]:
        """The batches that were received whole, in the order of their ends."""
        return self._ended

    def receive_earlier(self) -> None:
        """Receive what earlier commands sent: all, or what has ended if this one does not wait.

        Raises:
            ProviderError: A provider fails for good.
        """
        if self.options.waits:
            self.receive_all()
        else:
            self._look()

    def receive_all(self, send: Callable[[], None] = lambda: None) -> None:
        """Send, look and receive, until nothing is left to send and no batch is open.

        Args:
            send: Sends what may be sent now.

        Raises:
            WorkInFlight: Batches go on, and the command does not wait.
            ProviderError: A provider fails for good.
        """
        send()
        while self._recorder.state.open_batches:
            self._receive_some()
            send()

    def _receive_some(self) -> None:
        """Look until a batch has ended, or one of unknown fate was found or dropped.

        Raises:
            WorkInFlight: There is no such batch now, and the command does not wait.
        """
        for delay_s in self.options.delays_s():
            if self._look() or not self._recorder.state.open_batches:
                return
            if not self.options.waits:
                raise WorkInFlight(self._in_flight())
            self._watch.sleep(delay_s, self._standing)

    def _look(self) -> bool:
        """Look at each open batch once, and receive those that have ended.

        Looking is free, so a provider that does not answer is only told of.

        Returns:
            Whether something was recorded.

        Raises:
            BatchGone: A provider no longer has a batch, and there is nothing else to receive.
            ResultsLost: Likewise, it no longer keeps the results of one.
        """
        version, gone, why_silent = self._recorder.state.version, None, None
        for batch in self._recorder.state.open_batches:
            try:
                self._look_at(batch.planned.batch_key)
            except NotAnswering as error:
                why_silent = error.why
            except (BatchGone, ResultsLost) as error:
                gone = error
        self._watch.looked(why_silent)
        has_news = self._recorder.state.version > version
        if gone is not None and not has_news:
            raise gone
        return has_news

    def _look_at(self, key: Digest) -> None:
        """Receive a batch if it has ended; find out first whether it exists."""
        if self._recorder.state.batches[key].status == "unknown":
            self._resolve(key)
        batch = self._recorder.state.batches[key]
        if batch.is_open and batch.submitted is not None:
            state = self._port(batch).retrieve(batch.submitted.provider_batch_id)
            if state.has_ended:
                self._receive(batch, state)

    def _resolve(self, key: Digest) -> None:
        """Find out whether a planned batch exists, if that can be known already."""
        options, is_new = self.options, key not in self._sought_since
        batch = self._recorder.state.batches[key]
        now, ours = now_at(self._port(batch), options), options.now()
        since, ours_since = self._sought_since.setdefault(key, (now, ours))
        # a plan from the future, made before the clock was set back, counts as made at `since`
        age = max(now - min(batch.planned.planned_at, since), ours - ours_since)
        left_s = options.settle_s - age.total_seconds()
        try:
            told = resolve_batch(self._recorder, self.port_of, batch, left_s, now=now)
        except FateUnknown as error:
            if is_new:
                options.tell(str(error))
        else:
            options.tell(told)

    def _port(self, batch: Batch) -> BatchJudge:
        return port_for(self._recorder.state, batch, self.port_of)

    def _in_flight(self) -> str:
        batches = self._recorder.state.open_batches
        queries = counted(sum(len(batch.planned.queries) for batch in batches), "query", "queries")
        return (
            f"{queries} in {counted(len(batches), 'batch', 'batches')} with the provider;"
            " `tourney batch wait` receives them"
        )

    def _standing(self) -> str:
        """Return what has come of all that this command waits for."""
        batches = self._recorder.state.open_batches
        n_done = sum(self._received[key] for key in self._ended)
        n_queries = n_done + sum(len(batch.planned.queries) for batch in batches)
        return (
            f"{n_done} of {counted(n_queries, 'query', 'queries')} and {len(self._ended)} of"
            f" {counted(len(self._ended) + len(batches), 'batch', 'batches')} are done"
        )

    def _receive(self, batch: Batch, state: BatchState) -> None:
        """Record every answer of an ended batch, and its end.

        Raises:
            BatchRefused: The provider found it invalid, as it would find the next one.
            NotAnswering: Its results cannot be read, or not all of them.
            ResultsLost: The provider no longer keeps them.
        """
        self._why_not = self._why_none = ""  # of this batch, not of the last one, even if cut off
        try:
            state = self._read(batch, state)
        except ResultsLost:
            if state.failure is None:
                raise
        self._recorder.record(EndBatch(batch.planned.batch_key, state))
        self._ended.append(batch.planned.batch_key)
        if state.failure is not None:
            why = f"batch {state.provider_batch_id} was found invalid, and is not billed"
            raise BatchRefused(f"{why}: {state.failure}")
        if self._why_not:
            self.options.tell(f"the last error: {self._why_not}")
        self.options.tell(
            f"batch {state.provider_batch_id} ended: {state.n_succeeded} answered,"
            f" {len(batch.planned.queries) - state.n_succeeded} not"
        )
        if self._why_none:
            raise ProviderError(
                f"queries of batch {state.provider_batch_id} failed, and not because of their"
                f" content: {self._why_none}; correct the account or the settings: they stay open"
            )

    def _read(self, batch: Batch, state: BatchState) -> BatchState:
        """Record a batch's answers as they are read; of two to a query, the first.

        Returns:
            The state, with the counts of what was read.

        Raises:
            NotAnswering: There are fewer than the provider counts, or than queries, if it counts
                none or too many. A download can end early without an error.
        """
        missing, n_by_reason, n_surplus = set(batch.planned.queries), Counter[str](), 0
        unread = self._sent_in(state)
        n_sent = len(unread)
        for group in _grouped(self._port(batch).results(state.provider_batch_id)):
            firsts: list[Answer] = []
            for answer in group:
                unread.discard(answer.query_key)
                if answer.query_key in missing:
                    missing.remove(answer.query_key)
                    firsts.append(answer)
                else:
                    n_surplus += 1
            self._record(batch, [self._blamed(answer, state) for answer in firsts])
            n_by_reason.update(
                "answered" if isinstance(answer, Reply) else answer.reason for answer in firsts
            )
            self._count(batch, len(missing))
        _require_whole(state, n_sent, len(unread))
        if n_surplus:
            surplus = counted(n_surplus, "result")
            self.options.tell(
                f"batch {state.provider_batch_id} has {surplus} too many, for queries of other"
                " batches or for one query twice; they are ignored"
            )
        if missing:
            self._give_up(batch, state, missing)
        return replace(
            state,
            n_succeeded=n_by_reason["answered"],
            n_errored=n_by_reason["errored"] + n_by_reason["rejected"],
            n_canceled=n_by_reason["canceled"],
            n_expired=n_by_reason["expired"],
        )

    def _sent_in(self, state: BatchState) -> set[Digest]:
        """Return the queries of a provider's batch: a later plan is only of what was lost of it."""
        return {
            key
            for batch in self._recorder.state.own_batches
            if batch.submitted is not None
            and batch.submitted.provider_batch_id == state.provider_batch_id
            for key in batch.planned.queries
        }

    def _give_up(self, batch: Batch, state: BatchState, missing: Collection[Digest]) -> None:
        """Record that the queries without a result failed; each may have been billed."""
        queries = counted(len(batch.planned.queries), "query", "queries")
        self.options.tell(
            f"batch {state.provider_batch_id} has no result for {len(missing)} of its {queries}:"
            " they may have been billed, and another command asks them again"
        )
        why = "the provider gave no result for it"
        self._record(batch, [NoReply(key, "errored", why, "perhaps billed") for key in missing])

    def _count(self, batch: Batch, n_missing: int) -> None:
        """Count what has come of a batch, and report it out of what is still in flight."""
        key, n_queries = batch.planned.batch_key, len(batch.planned.queries)
        n_before = self._received[key]
        self._received[key] = max(n_before, n_queries - n_missing)
        others = sum(
            len(each.planned.queries)
            for each in self._recorder.state.open_batches
            if each.planned.batch_key != key
        )
        if self._received[key] > n_before:
            n_received = self._received.total()
            self.options.on_progress("replies", n_received, n_received + n_missing + others)

    def _blamed(self, answer: Answer, state: BatchState) -> Answer:
        """Return an answer; a rejection is not the query's fault if no query succeeded."""
        if isinstance(answer, Reply):
            return answer
        if answer.reason == "rejected" and state.n_results is None:
            answer = replace(answer, reason="errored")  # nobody knows if all are rejected
        elif answer.reason == "rejected" and state.n_errored == state.n_queries > 1:
            answer = replace(answer, reason="errored", then="stop")
        if answer.then == "stop":
            self._why_none = answer.detail
        return answer

    def _record(self, batch: Batch, answers: Sequence[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, NoReply):
                self._why_not = answer.detail
                self.n_other_form[answer.query_key] += answer.then == "wait"
        receipts, queries = self._receipts(batch.planned.judge)
        worst_usd = batch.worst_usd_each
        receipts.record((each, queries.get(each.query_key), worst_usd) for each in answers)

    def _receipts(self, reference: Reference) -> tuple[Receipts, Mapping[Digest, JudgeQuery]]:
        """Return what records a judge's answers, and the queries that it may have been sent."""
        if reference not in self._receipts_of:
            state = self._recorder.state
            judge = state.judges[reference]
            asked = everything_asked(self._recorder, state, judge).queries_in(state)
            self._receipts_of[reference] = (
                Receipts(self._recorder, judge, self.options.pricing_of(judge), self.options.tell),
                {query.query_key: query for query in asked},
            )
        return self._receipts_of[reference]


def _grouped(answers: Iterable[Answer]) -> Iterator[Sequence[Answer]]:
    """Yield answers in groups; those before an error come before it."""
    group, stop = list[Answer](), None
    try:
        for answer in answers:
            group.append(answer)
            if len(group) == _GROUP:
                yield group
                group = []
    except TourneyError as error:
        stop = error
    if group:
        yield group
    if stop is not None:
        raise stop


def _require_whole(state: BatchState, n_queries: int, n_unread: int) -> None:
    """Require as many results as the provider counts, and at most as many as queries.

    Raises:
        NotAnswering: There are fewer.
    """
    name = state.provider_batch_id
    n_counted = n_queries if state.n_results is None else min(state.n_results, n_queries)
    if n_queries - n_unread < n_counted:
        raise NotAnswering(
            f"{n_queries - n_unread} of {counted(n_counted, 'result')} of batch {name} can be"
            f" read until now; `tourney batch forget {name}` gives up the others, which may"
            " have been billed"
        )
