"""Use case: wait for batches, and receive them.

A batch is polled until it has ended; all its results are recorded before its end is. Until as many
were read as the provider counts, it is polled: what was not read is paid for all the same. A wait
may last a day, so it tells each minute where it stands.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from commands.batching.recovery import FateUnknown, SideOf, resolve_batch
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
from commands.ports import BatchAnswer, BatchState, NoReply, OnProgress, Tell, key_of
from commands.spending.pricing import FREE_OF_CHARGE, Pricing
from ledger.errors import TourneyError
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from ledger.store import utc_now
from projections.tournament.requests import Batch

_FIRST_S: Final = 5.0
_GROWTH: Final = 1.5
_BETWEEN_LINES: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class BatchOptions:
    """How batches are sent, priced and polled, and the clock to do it by."""

    tell: Tell
    on_progress: OnProgress
    pricing_of: Callable[[JudgeSettings], Pricing] = lambda _: FREE_OF_CHARGE
    waits: bool = True  # False: poll once, and leave the rest to a later command
    prewarms: bool = False  # send the first query of each rubric ahead: others find it cached
    most_queries: int = 2000  # in one batch; fewer where the provider takes fewer
    longest_poll_s: float = 60.0  # between two polls
    settle_s: float = 300.0  # what was sent, and the provider does not list then, never arrived
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = utc_now

    def delays_s(self) -> Iterator[float]:
        """Yield the delays between polls: longer and longer, up to the longest."""
        delay_s = min(_FIRST_S, self.longest_poll_s)
        while True:
            yield delay_s
            delay_s = min(delay_s * _GROWTH, self.longest_poll_s)


class Watch:
    """Tells each minute where a wait stands, and since when a provider has not answered."""

    def __init__(self, options: BatchOptions) -> None:
        self._options, self._tell = options, options.tell
        self._began_at: datetime | None = None  # None: nobody has waited yet
        self._told_at = options.now()
        self._silent_since: datetime | None = None
        self._why_silent: str | None = None

    def looked(self, why_silent: str | None) -> None:
        """Record after each poll that every provider answered, or why one did not."""
        if why_silent is None:
            if self._silent_since is not None:
                self._tell("the provider answers again")
            self._silent_since = None
        elif self._silent_since is None or why_silent != self._why_silent:
            self._silent_since = self._silent_since or self._options.now()
            self._tell(f"the provider does not answer: {why_silent}")
        self._why_silent = why_silent

    def sleep(self, seconds: float, standing: Callable[[], str]) -> None:
        """Wait; once a minute, tell what has come so far."""
        if self._began_at is None:
            self._began_at = self._told_at = self._options.now()
        while seconds > 0:
            left = self._told_at + _BETWEEN_LINES - self._options.now()
            if left <= timedelta():
                self._tell(self._line(self._began_at, standing()))
                self._told_at, left = self._options.now(), _BETWEEN_LINES
            part_s = min(seconds, left.total_seconds())
            self._options.sleep(part_s)
            seconds -= part_s

    def _line(self, began_at: datetime, standing: str) -> str:
        waited = f"waiting for {_lasting(self._options.now() - began_at)}: {standing}"
        if self._silent_since is None:
            return waited
        since = f"{self._silent_since.astimezone():%H:%M:%S}"
        return f"{waited}; no answer since {since}: {self._why_silent}"


def _lasting(time: timedelta) -> str:
    """Return a duration in words: "5 min", "2 h 5 min"."""
    hours, minutes = divmod(int(time.total_seconds()) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


_GROUP: Final = 100  # answers in one transaction


class BatchReceiver:
    """Receives one tournament's batches from their providers, whichever process sent them."""

    def __init__(
        self,
        recorder: Recorder,
        side_of: SideOf,
        options: BatchOptions,
        *,
        wants: Callable[[Batch], bool] = lambda _: True,
    ) -> None:
        """Take the tournament, the sides, how batches are polled, and which of them; else all."""
        self._recorder, self._side_of, self.options = recorder, side_of, options
        self._wants = wants
        self._watch = Watch(options)
        # batches of unknown fate, by the provider's clock and by ours, which either may stand
        self._sought_since: dict[Digest, tuple[datetime, datetime]] = {}
        self._received: Counter[Digest] = Counter()  # answers by batch
        self.n_other_form: Counter[Digest] = Counter()  # of a request: sent again in another form
        self._ended: list[Digest] = []
        self._why_not = ""  # the provider's last error of a request of the batch that is received
        self._why_none = ""  # its last error that is not of a request

    @property
    def ended(self) -> Sequence[Digest]:
        """The batches that were received whole, in the order of their ends."""
        return self._ended

    @property
    def open_batches(self) -> Sequence[Batch]:
        """The batches that are to be received."""
        return [batch for batch in self._recorder.state.open_batches if self._wants(batch)]

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
        while self.open_batches:
            self._receive_some()
            send()

    def _receive_some(self) -> None:
        """Look until a batch has ended, or one of unknown fate was found or dropped.

        Raises:
            WorkInFlight: There is no such batch now, and the command does not wait.
        """
        for delay_s in self.options.delays_s():
            if self._look() or not self.open_batches:
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
        for batch in self.open_batches:
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
            state = self._side_of(batch).port_of(batch).retrieve(batch.submitted.provider_batch_id)
            if state.has_ended:
                self._receive(batch, state)

    def _resolve(self, key: Digest) -> None:
        """Find out whether a planned batch exists, if that can be known already."""
        options, is_new = self.options, key not in self._sought_since
        batch = self._recorder.state.batches[key]
        ours = options.now()
        now = self._side_of(batch).port_of(batch).now() or ours
        since, ours_since = self._sought_since.setdefault(key, (now, ours))
        # a plan from the future, made before the clock was set back, counts as made at `since`
        age = max(now - min(batch.planned.planned_at, since), ours - ours_since)
        left_s = options.settle_s - age.total_seconds()
        try:
            told = resolve_batch(self._recorder, self._side_of, batch, left_s, now=now)
        except FateUnknown as error:
            if is_new:
                options.tell(str(error))
        else:
            options.tell(told)

    def _in_flight(self) -> str:
        batches = self.open_batches
        requests = counted(sum(len(batch.planned.queries) for batch in batches), "request")
        return (
            f"{requests} in {counted(len(batches), 'batch', 'batches')} with the provider;"
            " `tourney batch wait` receives them"
        )

    def _standing(self) -> str:
        """Return what has come of all that this command waits for."""
        batches = self.open_batches
        n_done = sum(self._received[key] for key in self._ended)
        n_requests = n_done + sum(len(batch.planned.queries) for batch in batches)
        return (
            f"{n_done} of {counted(n_requests, 'request')} and {len(self._ended)} of"
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
                f"requests of batch {state.provider_batch_id} failed, and not because of their"
                f" content: {self._why_none}; correct the account or the settings: they stay open"
            )

    def _read(self, batch: Batch, state: BatchState) -> BatchState:
        """Record a batch's answers as they are read; of two to a request, the first.

        Returns:
            The state, with the counts of what was read.

        Raises:
            NotAnswering: There are fewer than the provider counts, or than requests, if it counts
                none or too many. A download can end early without an error.
        """
        missing, n_by_reason, n_surplus = set(batch.planned.queries), Counter[str](), 0
        unread = self._sent_in(state)
        n_sent = len(unread)
        results = self._side_of(batch).port_of(batch).results(state.provider_batch_id)
        for group in _grouped(results):
            firsts: list[BatchAnswer] = []
            for answer in group:
                key = key_of(answer)
                unread.discard(key)
                if key in missing:
                    missing.remove(key)
                    firsts.append(answer)
                else:
                    n_surplus += 1
            self._record(batch, [self._blamed(answer, state) for answer in firsts])
            n_by_reason.update(
                answer.reason if isinstance(answer, NoReply) else "answered" for answer in firsts
            )
            self._count(batch, len(missing))
        _require_whole(state, n_sent, len(unread))
        if n_surplus:
            surplus = counted(n_surplus, "result")
            self.options.tell(
                f"batch {state.provider_batch_id} has {surplus} too many, for requests of other"
                " batches or for one request twice; they are ignored"
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
        """Return the requests of a provider's batch: a later plan has only what was lost of it."""
        return {
            key
            for batch in self._recorder.state.own_batches
            if batch.submitted is not None
            and batch.submitted.provider_batch_id == state.provider_batch_id
            for key in batch.planned.queries
        }

    def _give_up(self, batch: Batch, state: BatchState, missing: Collection[Digest]) -> None:
        """Record that the requests without a result failed; each may have been billed."""
        requests = counted(len(batch.planned.queries), "request")
        self.options.tell(
            f"batch {state.provider_batch_id} has no result for {len(missing)} of its {requests}:"
            " they may have been billed, and another command sends them again"
        )
        why = "the provider gave no result for it"
        self._record(batch, [NoReply(key, "errored", why, "perhaps billed") for key in missing])

    def _count(self, batch: Batch, n_missing: int) -> None:
        """Count what has come of a batch, and report it out of what is still in flight."""
        key, n_queries = batch.planned.batch_key, len(batch.planned.queries)
        n_before = self._received[key]
        self._received[key] = max(n_before, n_queries - n_missing)
        others = sum(
            len(open_batch.planned.queries)
            for open_batch in self.open_batches
            if open_batch.planned.batch_key != key
        )
        if self._received[key] > n_before:
            n_received = self._received.total()
            self.options.on_progress("replies", n_received, n_received + n_missing + others)

    def _blamed(self, answer: BatchAnswer, state: BatchState) -> BatchAnswer:
        """Return an answer; a rejection is not the request's fault if no request succeeded."""
        if not isinstance(answer, NoReply):
            return answer
        if answer.reason == "rejected" and state.n_results is None:
            answer = replace(answer, reason="errored")  # nobody knows if all are rejected
        elif answer.reason == "rejected" and state.n_errored == state.n_queries > 1:
            answer = replace(answer, reason="errored", then="stop")
        if answer.then == "stop":
            self._why_none = answer.detail
        return answer

    def _record(self, batch: Batch, answers: Sequence[BatchAnswer]) -> None:
        for answer in answers:
            if isinstance(answer, NoReply):
                self._why_not = answer.detail
                self.n_other_form[answer.query_key] += answer.then == "wait"
        self._side_of(batch).record(batch, answers)


def _grouped(answers: Iterable[BatchAnswer]) -> Iterator[Sequence[BatchAnswer]]:
    """Yield answers in groups; those before an error come before it."""
    group, stop = list[BatchAnswer](), None
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


def _require_whole(state: BatchState, n_sent: int, n_unread: int) -> None:
    """Require as many results as the provider counts, and at most as many as requests.

    Raises:
        NotAnswering: There are fewer.
    """
    name = state.provider_batch_id
    n_counted = n_sent if state.n_results is None else min(state.n_results, n_sent)
    if n_sent - n_unread < n_counted:
        raise NotAnswering(
            f"{n_sent - n_unread} of {counted(n_counted, 'result')} of batch {name} can be"
            f" read until now; `tourney batch forget {name}` gives up the others, which may"
            " have been billed"
        )
