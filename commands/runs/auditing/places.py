"""Where the events with the key of a response or of a query are, noted as they are gone through."""

from array import array
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ledger.events import judging
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest
from ledger.recorded import Recorded

_N_HEX: Final = 16  # of a key are noted: that two share them is rare, and does no harm


class KeyPlaces:
    """The positions of the events with the key of a response or of a query."""

    def __init__(self) -> None:
        self._keys, self._positions = array("Q"), array("Q")
        self._n_sorted = 0
        self._sorted = self._in_order()

    def note(self, events: Iterable[Recorded]) -> None:
        """Take note of more events."""
        for recorded in events:
            match recorded.event:
                case ResponseGenerated(response_key=key) | ResponseFailed(response_key=key):
                    self._add(key, recorded.position)
                case (
                    judging.VerdictReceived(query_key=key) | judging.JudgeQueryFailed(query_key=key)
                ):
                    self._add(key, recorded.position)
                case judging.PairReconciled(forward=key):
                    self._add(key, recorded.position)
                case _:
                    pass

    def _add(self, key: Digest, position: int) -> None:
        self._keys.append(int(key[:_N_HEX], 16))
        self._positions.append(position)

    def positions(self, keys: Iterable[Digest]) -> list[int]:
        """Return the positions of the events with some keys, and perhaps of a few others."""
        if self._n_sorted < len(self._keys):
            self._sorted, self._n_sorted = self._in_order(), len(self._keys)
        noted, positions = self._sorted
        sought = np.array([int(key[:_N_HEX], 16) for key in keys], dtype=np.uint64)
        first, last = (noted.searchsorted(sought, side) for side in ("left", "right"))
        found = {at for a, b in zip(first, last, strict=True) for at in positions[a:b].tolist()}
        return sorted(found)

    def _in_order(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        keys, positions = (np.array(each) for each in (self._keys, self._positions))
        order = np.argsort(keys, kind="stable")
        return keys[order], positions[order]
