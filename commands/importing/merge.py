"""Use case of `tourney merge` and `tourney import`: append another ledger's events to this one.

"Ours" is the ledger that is written, "theirs" the other. Equal events are recorded once; where they
contradict each other, ours is kept, and what follows only from theirs is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from ledger.chain import is_tombstone
from ledger.errors import UnreadableEvent
from ledger.events import evaluations
from ledger.events.imports import LedgerMerged
from ledger.events.judging import PairReconciled, VerdictReceived
from ledger.events.registry import Event
from ledger.events.values import EventRedacted
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded, StoredEvent
from ledger.storage.writer import Conflict, EventWriter, draft
from ledger.store import Ledger
from projections.evaluations.state import (
    EVALUATION_EVENTS,
    Labels,
    SampleFact,
    SampleKey,
    is_same_plan,
    key_of,
    labels_of,
)

_PlanLabel: TypeAlias = tuple[StreamId, Labels, int]
"""How a completion refers to its plan: by its stream, its labels and its number."""


class _Plans:
    """Our evaluation plans, and their plans that were rejected because they contradict ours.

    A sample of a rejected plan waits for another plan that asks for it: a later plan of theirs
    may belong to the same run.
    """

    def __init__(self, ours: Iterable[Recorded]) -> None:
        self._plans: dict[_PlanLabel, evaluations.EvaluationPlanned] = {}  # ours
        self._n_samples: dict[Digest, dict[Digest, int]] = defaultdict(dict)  # by run, then item
        self._left_out: set[_PlanLabel] = set()
        self._waiting: dict[Digest, list[StoredEvent]] = {}  # samples of rejected plans, by run
        self._completed: set[_PlanLabel] = set()  # our completions
        self._observed: set[tuple[StreamId, SampleKey]] = set()  # our samples
        # runs of which we observed samples that are unscorable to them
        self._unscorable_runs: set[tuple[StreamId, Digest]] = set()
        for recorded in ours:
            stream = recorded.stream
            match event := recorded.event:
                case evaluations.EvaluationPlanned():
                    self.register(stream, event)
                case evaluations.EvaluationCompleted():
                    self._completed.add(_label_of(stream, event))
                case evaluations.SampleObserved():
                    self._observed.add((stream, key_of(event)))
                case _:
                    pass

    @property
    def n_waiting(self) -> int:
        """Number of samples that no plan of ours asks for yet."""
        return sum(map(len, self._waiting.values()))

    def register(self, stream: StreamId, event: Event) -> Sequence[StoredEvent]:
        """Take note of a merged event; return the samples that waited for such a plan."""
        match event:
            case evaluations.EvaluationPlanned():
                self._plans[_label_of(stream, event)] = event
                n_samples = self._n_samples[event.run_key]
                for item in event.items:
                    n_samples[item] = max(event.n_samples, n_samples.get(item, 0))
                if waited := self._waiting.get(event.run_key):
                    self._waiting[event.run_key] = []  # they wait again if it does not ask for them
                    return waited
            case evaluations.SampleUnscorable() if (stream, key_of(event)) in self._observed:
                self._unscorable_runs.add((stream, event.run_key))
            case _:
                pass
        return ()

    def reject(self, stream: StreamId, plan: evaluations.EvaluationPlanned) -> None:
        """Take note that their plan contradicts ours."""
        self._left_out.add(_label_of(stream, plan))
        self._waiting.setdefault(plan.run_key, [])

    def has(self, stream: StreamId, event: Event) -> bool:
        """Return whether a plan of theirs is ours, though one does not say how it asks."""
        if not isinstance(event, evaluations.EvaluationPlanned):
            return False
        ours = self._plans.get(_label_of(stream, event))
        return ours is not None and is_same_plan(event, ours)

    def hold_sample(self, row: StoredEvent, sample: SampleFact) -> bool:
        """Keep a sample that only a rejected plan asks for; return whether it is kept."""
        waiting = self._waiting.get(sample.run_key)
        if waiting is None or sample.sample < self._n_samples[sample.run_key].get(sample.item, 0):
            return False
        waiting.append(row)
        return True

    def contradicts(self, stream: StreamId, completed: evaluations.EvaluationCompleted) -> bool:
        """Return whether its plan was rejected, or it counts as unscorable what we observed."""
        label = _label_of(stream, completed)
        ours = self._plans.get(label)
        misses_ours = ours is not None and (stream, ours.run_key) in self._unscorable_runs
        return label in self._left_out or (label not in self._completed and misses_ours)


def _label_of(
    stream: StreamId, event: evaluations.EvaluationPlanned | evaluations.EvaluationCompleted
) -> _PlanLabel:
    if isinstance(event, evaluations.EvaluationPlanned):
        return stream, labels_of(event), event.number
    return stream, Labels(event.entrant, event.evaluation), event.number


class MergeCounts(NamedTuple):
    """Counts of another ledger's events by what became of them."""

    n_new: int
    n_known: int  # already recorded here
    n_left: int  # outcomes that follow from replies that contradict ours
    conflicts: tuple[Conflict, ...]  # ours was kept
    n_unfounded: int = 0  # samples and completions of plans that contradict ours


def merge_ledger(ledger: Ledger, rows: Iterable[StoredEvent]) -> MergeCounts:
    """Append the events that this ledger lacks, all or none; repeating it is harmless.

    If the ledgers have different replies to one query, ours is kept and theirs is reported; their
    outcomes that follow from it are left out and can be reconciled from ours. If they have
    different plans of one evaluation, samples that only their plan asks for are left out, and so
    are completions that count other samples than ours. An empty ledger becomes an exact copy, with
    the same positions and the same head hash.

    Args:
        ledger: Open for writing.
        rows: All events of the other ledger, in order; audited, or from a checked export.

    Raises:
        LedgerError: An event cannot be read or written; nothing was appended.
    """
    with ledger.writing() as writer:
        taking = _Merge(writer, _Plans(writer.of_types(EVALUATION_EVENTS)))
        last = None
        for last in rows:
            taking.merge_event(last)
        taking.record_source(last)
        return taking.counts()


class _Merge:
    """The merge of one ledger's events into another."""

    def __init__(self, writer: EventWriter, plans: _Plans) -> None:
        self._writer = writer
        self._plans = plans
        self._is_copy = writer.position == 0
        self._n_new: Counter[StreamId] = Counter()
        self._n_known = self._n_left = self._n_unfounded = 0
        self._conflicts: list[Conflict] = []
        self._contradicted: set[Digest] = set()  # query keys
        self._untold: dict[str, int] = {}  # their positions of tombstones that were added, by id

    def merge_event(self, row: StoredEvent) -> None:
        """Append one event, if it is new and does not follow from what contradicts ours."""
        match event := row.decode().event:
            case EventRedacted() if not self._writer.is_redacted(bytes.fromhex(event.event_id)):
                self._n_known += 1  # ours has its texts, and keeps them
            case PairReconciled() if self._contradicted & {event.forward, event.swapped}:
                self._n_left += 1
            case evaluations.EvaluationCompleted() if self._plans.contradicts(
                StreamId(row.stream), event
            ):
                self._n_unfounded += 1
            case evaluations.SampleObserved() | evaluations.SampleUnscorable() if (
                self._plans.hold_sample(row, event)
            ):
                pass  # counted at the end if no plan asks for it
            case _:
                self._adopt(row, event)

    def _adopt(self, row: StoredEvent, event: Event) -> None:
        match self._writer.merge(row):
            case StoredEvent():
                self._n_new[StreamId(row.stream)] += 1
                if is_tombstone(row.data):
                    self._untold[row.event_id.hex()] = row.position
            case Conflict() if self._plans.has(StreamId(row.stream), event):
                self._n_known += 1
            case Conflict() as conflict:
                self._conflicts.append(conflict)
                self._contradict(row, event)
                return
            case None:
                self._n_known += 1
        if isinstance(event, EventRedacted):
            self._untold.pop(event.event_id, None)
        for waited in self._plans.register(StreamId(row.stream), event):
            self.merge_event(waited)

    def _contradict(self, row: StoredEvent, event: Event) -> None:
        """Take note of their event that contradicts ours."""
        match event:
            case VerdictReceived():
                self._contradicted.add(event.query_key)
            case evaluations.EvaluationPlanned():
                self._plans.reject(StreamId(row.stream), event)
            case evaluations.SampleUnscorable():  # for another reason than ours, but unscorable too
                self._plans.register(StreamId(row.stream), event)
            case _:
                pass

    def record_source(self, last: StoredEvent | None) -> None:
        """Record the source of the new events, by its last one, in each stream that got some.

        Raises:
            UnreadableEvent: An event was added whose texts were removed, and no event says so.
        """
        for position in self._untold.values():
            raise UnreadableEvent(position, "its texts were removed, and no event says so")
        if last is None or self._is_copy:
            return
        head, n_events = Digest(last.chain.hex()), last.position
        for stream, n_taken in self._n_new.items():
            merged = LedgerMerged(head=head, n_events=n_events, n_taken=n_taken)
            self._writer.append(stream, [draft(stream, merged)], expected_version=None)

    def counts(self) -> MergeCounts:
        """Return the counts."""
        n_new = self._n_new.total()
        n_unfounded = self._n_unfounded + self._plans.n_waiting
        return MergeCounts(n_new, self._n_known, self._n_left, tuple(self._conflicts), n_unfounded)
