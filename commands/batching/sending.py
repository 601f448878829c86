"""Send requests in batches that go on without this process, and never pay for one twice.

A plan is recorded before its batch is sent. A batch is sent again only after a refusal, and after
it was looked for: something between may refuse what it passed on. Batches of unknown fate are
recovered (recovery.py), so the same command run again goes on where the last died.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import accumulate, islice, takewhile
from typing import Any, Final, Generic, Protocol, TypeVar

from commands.batching.receiving import BatchReceiver
from commands.batching.recovery import SKEW, FateUnknown, sent_since
from commands.decisions.commands import Command, DropBatch, SubmitBatch
from commands.decisions.recorder import Recorder
from commands.errors import (
    BatchBusy,
    BatchRefused,
    BatchTooLarge,
    BatchUncertain,
    NoCredentials,
    NothingReadable,
    ProviderError,
    SpendLimitReached,
    counted,
)
from commands.ports import BatchAnswer, Batches, BatchState, GenerationTask, Tell, key_of
from commands.spending.budget import BudgetReached
from ledger.errors import StaleVersion, TourneyError
from ledger.identity import Digest
from projections.tournament.requests import Batch
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery

_Item = TypeVar("_Item")


class BatchWork(Protocol[_Item]):
    """What a command has to ask one judge or one entrant in batches, item by item."""

    @property
    def port(self) -> Batches[Any, BatchAnswer]:
        """The provider."""

    @property
    def n_tries(self) -> int:
        """How often the command sends an item, if it stays without an answer."""

    def request(self, item: _Item, /) -> JudgeQuery | GenerationTask:
        """Return the request of an item."""

    def still_open(self, items: Iterable[_Item], /) -> Sequence[_Item]:
        """Return the items that may be sent now: answers may have come meanwhile."""

    def affordable(self, items: Sequence[_Item], /) -> Sequence[_Item]:
        """Return as many of the first items as the cap allows.

        Raises:
            Refused: Not even the first is affordable, or no cap can be kept.
        """

    def plan(self, items: Sequence[_Item], planned_at: datetime, /) -> Sequence[Command]:
        """Return how to record the plan of a batch, its `PlanBatch` first."""

    def submission(
        self, key: Digest, created: BatchState, items: Sequence[_Item], /
    ) -> SubmitBatch:
        """Return how to record that the provider took a batch."""

    def require_readable(self, ended: Sequence[Batch], /) -> None:
        """Raise NothingReadable if what the command received holds nothing of use."""


# Anthropic takes 256 MB a batch, OpenAI 200 (2026), but their SDKs hold a body twice in memory.
_MOST_BYTES: Final = 64_000_000


def fitting_prefix(items: Sequence[_Item], n_bytes: Callable[[_Item], int]) -> Sequence[_Item]:
    """Return as many of the first items as fit a batch by bytes, and at least one."""
    sizes = accumulate(map(n_bytes, items))
    n_fitting = sum(1 for _ in takewhile(lambda size: size <= _MOST_BYTES, sizes))
    return items[: max(n_fitting, 1)]


_MOST_DROPPED: Final = 3  # batches that were never created, before giving up
_MOST_LESSONS: Final = 5  # of a request: parameters that a server may not take
_MOST_WAITS: Final = 6  # for a provider that takes no batch at present
_LONGEST_WAIT_S: Final = 120.0  # longer looks like a hang
_CLOCKS_APART: Final = timedelta(minutes=5)  # of a provider's own machines


@contextmanager
def telling_what_goes_on(recorder: Recorder, tell: Tell) -> Iterator[None]:
    """On Ctrl-C, list the batches that keep running, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        for batch in recorder.state.open_batches:
            name = batch.submitted.provider_batch_id if batch.submitted else "not yet known"
            requests = counted(len(batch.planned.queries), "request is", "requests are")
            tell(f"batch {name} keeps running: {requests} billed")
        if recorder.state.open_batches:
            tell("`tourney batch wait` receives them, `tourney batch cancel` stops them")
        raise


class BatchSender(Generic[_Item]):
    """Sends the batches of one judge or entrant."""

    def __init__(
        self, recorder: Recorder, work: BatchWork[_Item], reception: BatchReceiver
    ) -> None:
        self._recorder, self._work, self._reception = recorder, work, reception
        self._options, self._at_most = reception.options, reception.options.most_queries
        self._n_sent: Counter[Digest] = Counter()  # by this process
        self._uncertain: dict[Digest, BatchUncertain] = {}  # its batches that may not exist
        self._n_dropped = 0

    def send(self, chosen: Sequence[_Item]) -> None:
        """Send what may be sent now; nothing, while it is not known whether a batch exists.

        Raises:
            BudgetReached: The cap allows no more, and no open batch can change that.
            BatchRefused: The provider takes no more, and no open batch can change that.
            NothingReadable: The answers hold nothing readable, and none is under way.
        """
        self._count_dropped()
        if self._uncertain:
            return
        try:
            self._send_all(chosen)
        except BatchUncertain as error:
            self._options.tell(f"{error.why}; looking for the batch at the provider")
        except (BudgetReached, BatchRefused, NothingReadable) as stop:
            if not self._reception.open_batches:
                raise
            self._options.tell(f"some requests are not sent yet: {stop}")

    def _send_all(self, chosen: Sequence[_Item]) -> None:
        remaining = chosen
        while remaining:
            next_ones, remaining = remaining[: self._at_most], remaining[self._at_most :]
            if sendable := self.sendable(next_ones):
                n_sent = self._send_fitting(fitting_prefix(sendable, self._n_bytes))
                remaining = (*sendable[n_sent:], *remaining)

    def _n_bytes(self, item: _Item) -> int:
        return self._work.port.n_bytes(self._work.request(item))

    def _key_of(self, item: _Item) -> Digest:
        return key_of(self._work.request(item))

    def _send_fitting(self, items: Sequence[_Item]) -> int:
        """Send a batch; if it is too large for the provider, send half as many from now on."""
        try:
            return self._send(items)
        except BatchTooLarge as refusal:
            if len(items) == 1:
                raise
            self._at_most = len(items) // 2
            most = counted(self._at_most, "request")
            self._options.tell(f"{refusal.why}; from now on a batch has {most} at most")
            return 0

    def sendable(self, chosen: Sequence[_Item]) -> Sequence[_Item]:
        """Return the items that are open and have a try left."""
        retriable = (each for each in chosen if self._may_send(self._key_of(each)))
        return self._work.still_open(retriable)

    def _may_send(self, key: Digest) -> bool:
        """Say whether a request has a try left; one that taught what its server takes was none."""
        n_lessons = min(self._reception.n_other_form[key], _MOST_LESSONS)
        return self._n_sent[key] - n_lessons < self._work.n_tries

    def _send(self, items: Sequence[_Item]) -> int:
        """Record a plan, then send it once; return its number of requests.

        Raises:
            BudgetReached: It might cost more than is left; nothing was planned.
            BatchRefused: The provider rejected the batch, and would again.
            BatchUncertain: Whether the batch exists is not known.
            NothingReadable: The batches that ended now hold nothing readable.
        """
        work, n_wanted = self._work, len(items)
        work.require_readable([self._batch(key) for key in self._reception.ended])
        items = work.affordable(items)
        if len(items) < n_wanted:
            self._options.tell(
                f"the cap allows {len(items)} requests now, at their worst-case cost"
            )
        requests = [work.request(item) for item in items]
        told, version = work.port.now(), self._recorder.state.version
        now = told or self._options.now()
        try:
            self._recorder.record(*work.plan(items, now))
        except StaleVersion:  # a merge may have answered some: plan again
            return 0
        key = self._key_of_plan(version + 1)
        self._n_sent.update(map(key_of, requests))
        try:
            created = self._created(key, requests, now - (SKEW if told is None else _CLOCKS_APART))
        except (BatchRefused, SpendLimitReached, NoCredentials) as error:
            self._recorder.record(DropBatch(key, str(error)))
            self._n_sent.subtract(map(key_of, requests))
            raise
        except BatchUncertain as error:
            self._uncertain[key] = error
            raise
        self._recorder.record(work.submission(key, created, items))
        sent = counted(len(items), "request")
        self._options.tell(f"batch {created.provider_batch_id}: {sent} sent")
        return len(items)

    def _created(
        self, key: Digest, requests: Sequence[JudgeQuery | GenerationTask], since: datetime
    ) -> BatchState:
        """Send a batch, and again while the provider is busy, unless it took the batch.

        Args:
            key: The planned batch.
            requests: What it asks.
            since: Before it was sent, by the provider's clock.

        Raises:
            BatchRefused: The provider does not take it, and does not have it.
            BatchUncertain: Whether the batch exists is not known.
        """
        delays_s = islice(self._options.delays_s(), _MOST_WAITS)
        while True:
            try:
                return self._work.port.create(requests)
            except (BatchRefused, SpendLimitReached, NoCredentials) as refusal:
                has_waited = self._has_waited(refusal, next(delays_s, None))
                if (taken := self._taken(key, refusal, since)) is not None:
                    return taken
                if not has_waited:
                    raise

    def _has_waited(self, refusal: TourneyError, delay_s: float | None) -> bool:
        """Wait for a busy provider, as long as it asks; say whether it is worth another try."""
        if not isinstance(refusal, BatchBusy) or delay_s is None:
            return False
        wait_s = delay_s if refusal.asked_s is None else refusal.asked_s
        if wait_s <= _LONGEST_WAIT_S:
            self._options.sleep(wait_s)
        return wait_s <= _LONGEST_WAIT_S

    def _taken(
        self,
        key: Digest,
        refusal: BatchRefused | SpendLimitReached | NoCredentials,
        since: datetime,
    ) -> BatchState | None:
        """Return a batch that was refused and yet exists; None if it does not.

        Raises:
            BatchUncertain: It cannot be known yet.
        """
        if not refusal.was_sent:
            return None
        try:
            return sent_since(self._recorder.state, self._work.port, self._batch(key), since)
        except (FateUnknown, ProviderError, SpendLimitReached, NoCredentials) as error:
            raise BatchUncertain(f"{refusal}; {error}") from error

    def _key_of_plan(self, version: int) -> Digest:
        """Return the key of the plan at a version; a merge may have added others since."""
        own = self._recorder.state.own_batches
        (key,) = (batch.planned.batch_key for batch in own if batch.recorded.version == version)
        return key

    def _count_dropped(self) -> None:
        """Count batches that were never created as not sent; give up after several."""
        for key, error in [*self._uncertain.items()]:
            batch = self._batch(key)
            if batch.status == "unknown":
                continue
            del self._uncertain[key]
            if batch.status == "not created":
                self._n_dropped += not self._reception.open_batches  # which may change that
                self._n_sent.subtract(batch.planned.queries)
                if self._n_dropped > _MOST_DROPPED:
                    raise error

    def _batch(self, key: Digest) -> Batch:
        state: Tournament = self._recorder.state
        return state.batches[key]
