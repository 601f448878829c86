"""A first look at every event: most follow from events nearby, and need no second look.

Processes look at stretches of a ledger, of which each knows nothing of the stretches before. So an
event is sound where it follows from those before it in its stretch, and doubtful otherwise. What
could still be wrong is that an answer is there twice, which its key tells.
"""

from array import array
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import numpy as np

from commands.runs.auditing.places import KEYED, KeyNotes, Numbers
from ledger.chain import remaining_payload
from ledger.events.judging import JudgeBatchPlanned, JudgeBatchSubmitted
from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.reader import Columns
from ledger.recorded import EARLIEST_US, LATEST_US, Recorded
from projections.event_consistency import ConsistencyCheck

_DECODERS: Final = {
    (name.encode(), version): decode
    for (name, version), decode in EVENTS.decoders.items()
    if name in {type_name(each) for each in (*KEYED, JudgeBatchPlanned, JudgeBatchSubmitted)}
}


class Seen(NamedTuple):
    """What a first look saw of a stretch.

    notes: The keys of its events.
    again: The positions of events to look at again: the doubtful, those without a key, and the last
        of each kind, which a tournament's state names.
    """

    notes: KeyNotes
    again: Numbers


class FirstLook:
    """Looks at the events of a stretch in order."""

    def __init__(self, stops: Collection[int]) -> None:
        """Begin to look.

        Args:
            stops: The positions as of which runs were published.
        """
        self._stops = frozenset(stops)
        self._meaning = ConsistencyCheck()
        self._notes, self._again = KeyNotes(), array("Q")
        self._last: dict[tuple[bytes, bytes], int] = {}  # by type and stream

    def hear(self, row: Columns) -> None:
        """Look at the event in a row."""
        position, _, of, type_, schema_version, recorded_us, data, version, _, link = row
        decode = _DECODERS.get((type_, schema_version))
        if decode is None:
            self._again.append(position)
            return
        try:
            stream, (event, redacted) = StreamId(of.decode()), _decoded(decode, data)
            seen = Recorded(position, stream, version, recorded_us, link, event, redacted)
            is_doubtful = self._is_doubtful(seen) or not EARLIEST_US <= recorded_us <= LATEST_US
        except (AttributeError, TypeError, ValueError):  # it is damaged
            is_doubtful = True
        if is_doubtful:
            self._again.append(position)
        self._last[type_, of] = position
        if position in self._stops:
            self._again.extend(self._last.values())

    def _is_doubtful(self, seen: Recorded) -> bool:
        faults = self._meaning.faults_of(seen)
        if type(seen.event) not in KEYED:
            return True
        self._notes.note(seen.event, seen.position)
        return seen.redacted or bool(faults)

    def end(self) -> Seen:
        """Return what was seen."""
        self._again.extend(self._last.values())
        return Seen(self._notes, np.array(self._again))


def _decoded(decode: Callable[[bytes], Event], data: bytes) -> tuple[Event, bool]:
    """Return an event, and whether it is redacted: nearly none is, so that is found out last."""
    try:
        return decode(data), False
    except ValueError:
        return decode(remaining_payload(data)), True
