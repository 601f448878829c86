"""What killed writers told, held against what their ledger holds."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import msgspec

from ledger.auditing.audit import audit
from ledger.events.judging import VerdictReceived
from ledger.store import Ledger
from tests.support.faults.appender import Place, Told, batch_of, name_in, places_of


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one look, one round or many."""

    n_rounds: int = 0
    n_writers: int = 0
    n_killed_inside: int = 0  # writers, between the call of `append` and its return
    n_acknowledged: int = 0  # events
    n_unacknowledged: int = 0  # events recorded though their writer could not say so
    n_lost: int = 0  # acknowledged events that are not at their place, as they were
    n_half_batches: int = 0
    n_gaps: int = 0  # positions
    n_faults: int = 0  # of the audit and of SQLite's own check
    n_doubled: int = 0  # batches that are there twice, or asked for again and taken for new
    n_hot_wals: int = 0  # rounds that left a WAL to recover
    slowest_reopen_s: float = 0.0

    def __add__(self, other: "Figures") -> "Figures":
        """Count both together."""
        mine, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        sums = {name: mine[name] + theirs[name] for name in mine}
        slowest_s = max(self.slowest_reopen_s, other.slowest_reopen_s)
        return Figures(**{**sums, "slowest_reopen_s": slowest_s})

    @property
    def n_broken_promises(self) -> int:
        """All that must be zero."""
        return self.n_lost + self.n_half_batches + self.n_gaps + self.n_faults + self.n_doubled


class Heard(NamedTuple):
    """What the writers of a round told, in their order."""

    acknowledged: tuple[Place, ...]
    unanswered: tuple[Told, ...]  # begun, and killed before `append` returned


class Witness:
    """Follows one ledger over all its rounds."""

    def __init__(self) -> None:
        self._acknowledged: set[Place] = set()
        self._unanswered: list[Told] = []
        self._batches: set[str] = set()  # names of those that are there
        self.position = 0  # the last one looked at

    def hear(self, heard: Heard) -> None:
        """Remember what was promised, and what was not."""
        self._acknowledged.update(heard.acknowledged)
        self._unanswered.extend(heard.unanswered)

    def look(self, ledger: Ledger) -> Figures:
        """Compare the whole ledger with all promises, and what is new with its batches."""
        stored = stored_in(ledger)
        n_new = sum(place.position > self.position for place in stored)
        n_told = sum(place.position > self.position for place in self._acknowledged)
        last = max((place.position for place in stored), default=0)
        batches = self._look_at_batches(ledger)
        self.position = last
        return batches + Figures(
            n_unacknowledged=max(n_new - n_told, 0),
            n_lost=len(self._acknowledged - stored),
            n_gaps=last - len(stored),
            n_faults=len(audit(ledger)) + (ledger.select("PRAGMA quick_check") != [("ok",)]),
        )

    def _look_at_batches(self, ledger: Ledger) -> Figures:
        """Every batch stands together, as its name says that it was, and once."""
        events = [each.event for each in ledger.read(after=self.position)]
        verdicts = [each for each in events if isinstance(each, VerdictReceived)]
        n_half = n_doubled = 0
        for name, batch in groupby(verdicts, name_in):
            n_half += tuple(batch) != batch_of(name)
            n_doubled += name in self._batches
            self._batches.add(name)
        return Figures(n_half_batches=n_half, n_doubled=n_doubled)

    def ask_again(self, ledger: Ledger) -> Figures:
        """Append what went unanswered, as a resumed run does: new exactly if it is not there."""
        n_doubled = n_half = 0
        for told in self._unanswered:
            receipts = ledger.append(told.stream, batch_of(told.batch))
            news = {receipt.is_new for receipt in receipts}
            n_half += len(news) != 1
            n_doubled += news != {told.batch not in self._batches}
            self._batches.add(told.batch)
            self._acknowledged.update(places_of(receipts))
        self._unanswered.clear()
        self.position = ledger.head.position
        return Figures(n_half_batches=n_half, n_doubled=n_doubled)


def told_by(writers: Iterable[list[Told]]) -> Heard:
    """Sort what each writer told until it was killed."""
    acknowledged: list[Place] = []
    unanswered = []
    for steps in writers:
        for step in steps:
            acknowledged.extend(step.places)
        if steps and not steps[-1].places:
            unanswered.append(steps[-1])
    return Heard(tuple(acknowledged), tuple(unanswered))


def stored_in(ledger: Ledger) -> set[Place]:
    """Return the place of every event that is there."""
    return set(map(Place._make, ledger.select("SELECT position, leaf, chain FROM event")))
