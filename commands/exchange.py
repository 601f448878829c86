"""Use case: take the events of another ledger in, each as it was recorded there."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from commands.merged_plans import MergedPlans
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
from ledger.recorded import Row
from ledger.storage.writer import Conflict, Writer, draft
from ledger.store import Ledger

_FLUSHED_EVERY: Final = 1_000  # events: what waits to be inserted is held in memory


class Taken(NamedTuple):
    """What became of another ledger's events."""

    n_new: int
    n_known: int  # recorded here already, the same
    n_left: int  # outcomes that follow from a reply which contradicts ours
    conflicts: tuple[Conflict, ...]  # ours was kept
    n_unfounded: int = 0  # samples and completions of evaluations that ours contradict


def take_in(ledger: Ledger, rows: Iterable[Row]) -> Taken:
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
    with ledger.adopting() as writer:
        plans.read_on(writer)
        taking = _Taking(writer, plans)
        for row in rows:
            taking.take(row)
        taking.note()
        return taking.taken()


class _Taking:
    """Another ledger's events on their way in."""

    def __init__(self, writer: Writer, plans: MergedPlans) -> None:
        self._writer = writer
        self._plans = plans
        self._is_copy = writer.position == 0
        self._n_new: Counter[StreamId] = Counter()
        self._n_known = self._n_left = self._n_unfounded = 0
        self._conflicts: list[Conflict] = []
        self._contradicted: set[Digest] = set()  # query keys
        self._last: Row | None = None

    def take(self, row: Row) -> None:
        """Place one event, if it is new and follows from nothing that contradicts ours."""
        self._last = row
        self._sort(row)
        if row.position % _FLUSHED_EVERY == 0:
            self._writer.flush()

    def _sort(self, row: Row) -> None:
        match event := row.recorded().event:
            case PairReconciled() if self._follows_from_theirs(event):
                self._n_left += 1
            case EvaluationCompleted() if self._plans.are_against(StreamId(row.stream), event):
                self._n_unfounded += 1
            case SampleObserved() | SampleUnscorable() if self._plans.keep_waiting(row, event):
                pass  # counted at the end, if no plan of theirs comes for it
            case _:
                self._adopt(row, event)

    def _adopt(self, row: Row, event: Event) -> None:
        match self._writer.adopt(row):
            case Row():
                self._n_new[StreamId(row.stream)] += 1
            case Conflict() as conflict:
                self._conflicts.append(conflict)
                self._contradict(row, event)
                return
            case None:
                self._n_known += 1
        for waited in self._plans.take_note(StreamId(row.stream), event):
            self._sort(waited)

    def _contradict(self, row: Row, event: Event) -> None:
        """Take note of what may not follow."""
        match event:
            case VerdictReceived() | JudgeQueryFailed():
                self._contradicted.add(event.query_key)
            case EvaluationPlanned():
                self._plans.leave_out(StreamId(row.stream), event)
            case SampleUnscorable():  # for other reasons than ours, and given up all the same
                self._plans.take_note(StreamId(row.stream), event)
            case _:
                pass

    def note(self) -> None:
        """Record where the new events came from, in each stream that got some."""
        if self._last is None or self._is_copy:
            return
        head, n_events = Digest(self._last.chain.hex()), self._last.position
        for stream, n_taken in self._n_new.items():
            merged = LedgerMerged(head=head, n_events=n_events, n_taken=n_taken)
            self._writer.append(stream, [draft(stream, merged)], expected_version=None)

    def taken(self) -> Taken:
        """Return what became of them."""
        n_new = self._n_new.total()
        n_unfounded = self._n_unfounded + self._plans.n_waiting
        return Taken(n_new, self._n_known, self._n_left, tuple(self._conflicts), n_unfounded)

    def _follows_from_theirs(self, outcome: PairReconciled) -> bool:
        return not self._contradicted.isdisjoint({outcome.forward, outcome.swapped})
