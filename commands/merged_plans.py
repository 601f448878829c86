"""What may follow from the plans of evaluations that a merge brings together."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.events.evaluations import (
    EvaluationCompleted,
    EvaluationPlanned,
    SampleObserved,
    SampleUnscorable,
)
from ledger.events.registry import Event
from ledger.identity import Digest, StreamId
from ledger.recorded import Recorded, Row
from ledger.storage.writer import Writer
from ledger.store import Ledger
from projections.evaluations.state import EVALUATION_EVENTS, Fate, Labels, SampleKey, labels_of


class _Name(NamedTuple):
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
        self._runs: dict[_Name, Digest] = {}  # of the plans that we hold
        self._n_samples: dict[Digest, dict[Digest, int]] = defaultdict(dict)  # by run, then item
        self._left_out: set[_Name] = set()
        self._waiting: dict[Digest, list[Row]] = {}  # samples by run, one that was left out
        self._completed: set[_Name] = set()  # by us
        self._observed: set[tuple[StreamId, SampleKey]] = set()  # by us
        self._given_up: set[tuple[StreamId, Digest]] = set()  # runs of which we observed more
        self._position = ours.head.position
        self._know(ours.read(types=EVALUATION_EVENTS, until=self._position))

    def read_on(self, writer: Writer) -> None:
        """Take note of what was recorded until the merge had the ledger to itself."""
        self._know(writer.committed_after(self._position))

    @property
    def n_waiting(self) -> int:
        """Count the samples that no plan of ours asks for yet."""
        return sum(map(len, self._waiting.values()))

    def take_note(self, stream: StreamId, event: Event) -> Sequence[Row]:
        """Take note that an event is ours now; return the samples that waited for such a plan."""
        match event:
            case EvaluationPlanned():
                return self._hold(stream, event)
            case SampleUnscorable() if (stream, _key_of(event)) in self._observed:
                self._given_up.add((stream, event.run_key))
            case _:
                pass
        return ()

    def leave_out(self, stream: StreamId, plan: EvaluationPlanned) -> None:
        """Take note that a plan of theirs contradicts ours."""
        self._left_out.add(_Name(stream, labels_of(plan), plan.number))
        self._waiting.setdefault(plan.run_key, [])

    def keep_waiting(self, row: Row, sample: Fate) -> bool:
        """Keep a sample of a run that was left out, if no plan of ours asks for it; say so."""
        waiting = self._waiting.get(sample.run_key)
        if waiting is None or sample.sample < self._n_samples[sample.run_key].get(sample.item, 0):
            return False
        waiting.append(row)
        return True

    def are_against(self, stream: StreamId, completed: EvaluationCompleted) -> bool:
        """Say whether its plan was left out, or it counts as given up what we have observed."""
        name = _name_of(stream, completed)
        is_new = name not in self._completed
        counts_less = (stream, self._runs.get(name)) in self._given_up
        return name in self._left_out or (is_new and counts_less)

    def _know(self, ours: Iterable[Recorded]) -> None:
        """Take note of what we had before the merge."""
        for recorded in ours:
            stream = recorded.stream
            match event := recorded.event:
                case EvaluationPlanned():
                    self._hold(stream, event)
                case EvaluationCompleted():
                    self._completed.add(_name_of(stream, event))
                case SampleObserved():
                    self._observed.add((stream, _key_of(event)))
                case _:
                    pass

    def _hold(self, stream: StreamId, plan: EvaluationPlanned) -> Sequence[Row]:
        self._runs[_Name(stream, labels_of(plan), plan.number)] = plan.run_key
        n_samples = self._n_samples[plan.run_key]
        for item in plan.items:
            n_samples[item] = max(plan.n_samples, n_samples.get(item, 0))
        waited = self._waiting.get(plan.run_key, [])
        if waited:  # those that this plan does not ask for either will wait again
            self._waiting[plan.run_key] = []
        return waited


def _name_of(stream: StreamId, event: EvaluationCompleted) -> _Name:
    return _Name(stream, Labels(event.entrant, event.evaluation), event.number)


def _key_of(sample: Fate) -> SampleKey:
    return SampleKey(sample.run_key, sample.item, sample.sample)
