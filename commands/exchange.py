"""Use case: take the events of another ledger in, each as it was recorded there."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from ledger.events.exchange import LedgerMerged
from ledger.events.judging import JudgeQueryFailed, PairReconciled, VerdictReceived
from ledger.identity import Digest, StreamId
from ledger.row import Row
from ledger.store import Ledger
from ledger.writer import Conflict, Writer, draft

_FLUSHED_EVERY: Final = 1_000  # events: what waits to be inserted is held in memory


class Taken(NamedTuple):
    """What became of another ledger's events."""

    n_new: int
    n_known: int  # recorded here already, the same
    n_left: int  # outcomes that follow from a reply which contradicts ours
    conflicts: tuple[Conflict, ...]  # ours was kept


def take_in(ledger: Ledger, rows: Iterable[Row]) -> Taken:
    """Append what is not here yet, all or nothing; doing it again appends nothing.

    Where both have recorded another reply to the same query, ours is kept and theirs is told;
    an outcome that follows from theirs is left out, since it can be reconciled from ours.
    An empty ledger becomes an exact copy: the same positions, the same head.

    Args:
        ledger: Open for writing.
        rows: All events of the other, in order; audited, or read from a checked export.

    Raises:
        LedgerError: Something cannot be read or written; nothing was taken in.
    """
    with ledger.adopting() as writer:
        taking = _Taking(writer)
        for row in rows:
            taking.take(row)
        taking.note()
        return taking.taken()


class _Taking:
    """Another ledger's events on their way in."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._is_copy = writer.position == 0
        self._n_new: Counter[StreamId] = Counter()
        self._n_known = self._n_left = 0
        self._conflicts: list[Conflict] = []
        self._contradicted: set[Digest] = set()  # query keys
        self._last: Row | None = None

    def take(self, row: Row) -> None:
        """Place one event, if it is new and follows from nothing that contradicts ours."""
        self._last = row
        event = row.recorded().event
        if isinstance(event, PairReconciled) and self._follows_from_theirs(event):
            self._n_left += 1
            return
        match self._writer.adopt(row):
            case Row():
                self._n_new[StreamId(row.stream)] += 1
            case Conflict() as conflict:
                self._conflicts.append(conflict)
                if isinstance(event, VerdictReceived | JudgeQueryFailed):
                    self._contradicted.add(event.query_key)
            case None:
                self._n_known += 1
        if row.position % _FLUSHED_EVERY == 0:
            self._writer.flush()

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
        return Taken(n_new, self._n_known, self._n_left, tuple(self._conflicts))

    def _follows_from_theirs(self, outcome: PairReconciled) -> bool:
        return not self._contradicted.isdisjoint({outcome.forward, outcome.swapped})
