"""Use case: take the events of another ledger in, each as it was recorded there."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ledger.events.evaluations import (
    EvaluationCompleted,
    EvaluationPlanned,
    SampleObserved,
    SampleUnscorable,
)
from ledger.events.imports import LedgerMerged
from ledger.events.judging import JudgeQueryFailed, PairReconciled, VerdictReceived
from ledger.events.registry import Event
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded, StoredEvent
from ledger.storage.writer import Conflict, Writer, draft
from ledger.store import Ledger
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    Labels,
    SampleFact,
    SampleKey,
    labels_of,
)


class _PlanLabel(NamedTuple):
    """What a completion calls its plan."""

    stream: StreamId
    labels: Labels
    number: int


class MergedPlans:
    """The plans that we hold, and those of theirs that were left out since they contradict ours.

    A sample of a plan that was left out waits for another plan that asks for it: theirs may come
    back to the same run under a later number.
    """

    def __init__(self, ours: Ledger) -> None:
        self._runs: dict[_PlanLabel, Digest] = {}  # of the plans that we hold
        self._n_samples: dict[Digest, dict[Digest, int]] = defaultdict(dict)  # by run, then item
        self._left_out: set[_PlanLabel] = set()
        self._waiting: dict[Digest, list[StoredEvent]] = {}  # samples by run, one that was left out
        self._completed: set[_PlanLabel] = set()  # by us
        self._observed: set[tuple[StreamId, SampleKey]] = set()  # by us
        self._given_up: set[tuple[StreamId, Digest]] = set()  # runs of which we observed more
        self._position = ours.head.position
        self._learn(ours.read(types=EVALUATION_EVENTS, until=self._position))

    def catch_up(self, writer: Writer) -> None:
        """Take note of what was recorded until the merge had the ledger to itself."""
        self._learn(writer.committed_after(self._position))

    @property
    def n_waiting(self) -> int:
        """Count the samples that no plan of ours asks for yet."""
        return sum(map(len, self._waiting.values()))

    def register(self, stream: StreamId, event: Event) -> Sequence[StoredEvent]:
        """Take note that an event is ours now; return the samples that waited for such a plan."""
        match event:
            case EvaluationPlanned():
                return self._add_plan(stream, event)
            case SampleUnscorable() if (stream, _key_of(event)) in self._observed:
                self._given_up.add((stream, event.run_key))
            case _:
                pass
        return ()

    def reject(self, stream: StreamId, plan: EvaluationPlanned) -> None:
        """Take note that a plan of theirs contradicts ours."""
        self._left_out.add(_PlanLabel(stream, labels_of(plan), plan.number))
        self._waiting.setdefault(plan.run_key, [])

    def hold_sample(self, row: StoredEvent, sample: SampleFact) -> bool:
        """Keep a sample of a run that was left out, if no plan of ours asks for it; say so."""
        waiting = self._waiting.get(sample.run_key)
        if waiting is None or sample.sample < self._n_samples[sample.run_key].get(sample.item, 0):
            return False
        waiting.append(row)
        return True

    def contradicts(self, stream: StreamId, completed: EvaluationCompleted) -> bool:
        """Say whether its plan was left out, or it counts as given up what we have observed."""
        name = _name_of(stream, completed)
        is_new = name not in self._completed
        counts_less = (stream, self._runs.get(name)) in self._given_up
        return name in self._left_out or (is_new and counts_less)

    def _learn(self, ours: Iterable[Recorded]) -> None:
        """Take note of what we had before the merge."""
        for recorded in ours:
            stream = recorded.stream
            match event := recorded.event:
                case EvaluationPlanned():
                    self._add_plan(stream, event)
                case EvaluationCompleted():
                    self._completed.add(_name_of(stream, event))
                case SampleObserved():
                    self._observed.add((stream, _key_of(event)))
                case _:
                    pass

    def _add_plan(self, stream: StreamId, plan: EvaluationPlanned) -> Sequence[StoredEvent]:
        self._runs[_PlanLabel(stream, labels_of(plan), plan.number)] = plan.run_key
        n_samples = self._n_samples[plan.run_key]
        for item in plan.items:
            n_samples[item] = max(plan.n_samples, n_samples.get(item, 0))
        waited = self._waiting.get(plan.run_key, [])
        if waited:  # those that this plan does not ask for either will wait again
            self._waiting[plan.run_key] = []
        return waited


def _name_of(stream: StreamId, event: EvaluationCompleted) -> _PlanLabel:
    return _PlanLabel(stream, Labels(event.entrant, event.evaluation), event.number)


def _key_of(sample: SampleFact) -> SampleKey:
    return SampleKey(sample.run_key, sample.item, sample.sample)


_FLUSHED_EVERY: Final = 1_000  # events: what waits to be inserted is held in memory


class MergeCounts(NamedTuple):
    """What became of another ledger's events."""

    n_new: int
    n_known: int  # recorded here already, the same
    n_left: int  # outcomes that follow from a reply which contradicts ours
    conflicts: tuple[Conflict, ...]  # ours was kept
    n_unfounded: int = 0  # samples and completions of evaluations that ours contradict


def merge_ledger(ledger: Ledger, rows: Iterable[StoredEvent]) -> MergeCounts:
    """Append what is not here yet, all or nothing; doing it again appends nothing.

    Where both have recorded another reply to the same query, ours is kept and theirs is told;
    an outcome that follows from theirs is left out, since it can be reconciled from ours.
    Of an evaluation that both have planned otherwise, what only their plan asks for is left out,
    and so is a completion that counts other samples than we hold.
    An empty ledger becomes an exact copy: the same positions, the same head.

    Args:
        ledger: Open for writing.
        rows: All events of the other, in order; audited, or read from a checked export.

    Raises:
        LedgerError: Something cannot be read or written; nothing was taken in.
    """
    plans = MergedPlans(ledger)
    with ledger.merging() as writer:
        plans.catch_up(writer)
        taking = _Merge(writer, plans)
        for row in rows:
            taking.merge_event(row)
        taking.record_source()
        return taking.counts()


class _Merge:
    """Another ledger's events on their way in."""

    def __init__(self, writer: Writer, plans: MergedPlans) -> None:
        self._writer = writer
        self._plans = plans
        self._is_copy = writer.position == 0
        self._n_new: Counter[StreamId] = Counter()
        self._n_known = self._n_left = self._n_unfounded = 0
        self._conflicts: list[Conflict] = []
        self._contradicted: set[Digest] = set()  # query keys
        self._last: StoredEvent | None = None

    def merge_event(self, row: StoredEvent) -> None:
        """Place one event, if it is new and follows from nothing that contradicts ours."""
        self._last = row
        self._sort(row)
        if row.position % _FLUSHED_EVERY == 0:
            self._writer.flush()

    def _sort(self, row: StoredEvent) -> None:
        match event := row.decode().event:
            case PairReconciled() if self._follows_from_theirs(event):
                self._n_left += 1
            case EvaluationCompleted() if self._plans.contradicts(StreamId(row.stream), event):
                self._n_unfounded += 1
            case SampleObserved() | SampleUnscorable() if self._plans.hold_sample(row, event):
                pass  # counted at the end, if no plan of theirs comes for it
            case _:
                self._adopt(row, event)

    def _adopt(self, row: StoredEvent, event: Event) -> None:
        match self._writer.merge(row):
            case StoredEvent():
                self._n_new[StreamId(row.stream)] += 1
            case Conflict() as conflict:
                self._conflicts.append(conflict)
                self._contradict(row, event)
                return
            case None:
                self._n_known += 1
        for waited in self._plans.register(StreamId(row.stream), event):
            self._sort(waited)

    def _contradict(self, row: StoredEvent, event: Event) -> None:
        """Take note of what may not follow."""
        match event:
            case VerdictReceived() | JudgeQueryFailed():
                self._contradicted.add(event.query_key)
            case EvaluationPlanned():
                self._plans.reject(StreamId(row.stream), event)
            case SampleUnscorable():  # for other reasons than ours, and given up all the same
                self._plans.register(StreamId(row.stream), event)
            case _:
                pass

    def record_source(self) -> None:
        """Record where the new events came from, in each stream that got some."""
        if self._last is None or self._is_copy:
            return
        head, n_events = Digest(self._last.chain.hex()), self._last.position
        for stream, n_taken in self._n_new.items():
            merged = LedgerMerged(head=head, n_events=n_events, n_taken=n_taken)
            self._writer.append(stream, [draft(stream, merged)], expected_version=None)

    def counts(self) -> MergeCounts:
        """Return what became of them."""
        n_new = self._n_new.total()
        n_unfounded = self._n_unfounded + self._plans.n_waiting
        return MergeCounts(n_new, self._n_known, self._n_left, tuple(self._conflicts), n_unfounded)

    def _follows_from_theirs(self, outcome: PairReconciled) -> bool:
        return not self._contradicted.isdisjoint({outcome.forward, outcome.swapped})
