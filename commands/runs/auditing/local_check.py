"""Check each event against those before it in its range: most need no further check.

Processes check ranges of a ledger, and know nothing of the ranges before. So an event is sound if
it follows from those before it in its range, and doubtful otherwise. That leaves one fault: an
answer that is there twice, which its key tells.
"""

from array import array
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from commands.runs.auditing.places import KEYED, KeyNotes, Numbers
from ledger.chain import remaining_payload
from ledger.events.judging import JudgeBatchPlanned, JudgeBatchSubmitted
from ledger.events.registry import EVENTS, Event
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.reader import Columns
from ledger.recorded import EARLIEST_US, LATEST_US
from projections.event_consistency import ConsistencyCheck

_DECODERS: Final = {
    (name.encode(), version): decode
    for (name, version), decode in EVENTS.decoders.items()
    if name in {type_name(each) for each in (*KEYED, JudgeBatchPlanned, JudgeBatchSubmitted)}
}


class LocalFindings(NamedTuple):
    """What the check of a range found.

    notes: The keys of its events.
    doubtful: The positions of events to check again with all that has their keys: those that do not
        follow from the range, those without a key, and the last of each kind, which a tournament's
        state names.
    """

    notes: KeyNotes
    doubtful: Numbers


class LocalCheck:
    """Checks the events of a range in order."""

    def __init__(self, stops: Collection[int]) -> None:
        """Begin a range.

        Args:
            stops: The positions as of which runs were published.
        """
        self._stops = frozenset(stops)
        self._consistency = ConsistencyCheck()
        self._notes, self._doubtful = KeyNotes(), array("Q")
        self._last: dict[tuple[bytes, bytes], int] = {}  # by type and stream

    def add(self, page: Sequence[Columns]) -> None:
        """Check the events in more rows."""
        keyed: list[tuple[int, Event]] = []
        for position, _, of, type_, schema_version, recorded_us, data, *_ in page:
            decode = _DECODERS.get((type_, schema_version))
            if decode is None:
                self._doubtful.append(position)
                continue
            try:
                event, is_redacted = _decoded(decode, data)
                stream = _stream_id(of)
                faults = self._consistency.faults_of(event, stream, is_redacted=is_redacted)
                is_in_time = EARLIEST_US <= recorded_us <= LATEST_US
            except (AttributeError, TypeError, ValueError):  # it is damaged
                self._doubtful.append(position)
            else:
                if type(event) in KEYED:
                    keyed.append((position, event))
                if faults or is_redacted or not is_in_time or type(event) not in KEYED:
                    self._doubtful.append(position)
            self._last[type_, of] = position
            if position in self._stops:
                self._doubtful.extend(self._last.values())
        self._doubtful.extend(self._notes.add(keyed))

    def result(self) -> LocalFindings:
        """Return what was found."""
        self._doubtful.extend(self._last.values())
        self._notes.sort()
        return LocalFindings(self._notes, np.array(self._doubtful))


@lru_cache(maxsize=64)
def _stream_id(stored: bytes) -> StreamId:
    return StreamId(stored.decode())


def _decoded(decode: Callable[[bytes], Event], data: bytes) -> tuple[Event, bool]:
    """Return an event, and whether it is redacted: nearly none is, so that is found out last."""
    try:
        return decode(data), False
    except ValueError:
        return decode(remaining_payload(data, 0)[0]), True
