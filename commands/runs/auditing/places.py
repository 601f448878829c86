"""An index of the events with the key of a response or of a query: by key, their positions."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.events import judging
from ledger.events.registry import Event
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest

_N_HEX: Final = 16  # of a key are noted: that two share them is rare, and does no harm
Numbers: TypeAlias = NDArray[np.uint64]

_ASKED, _GENERATED, _SAID, _FAILED, _RECONCILED, _SWAPPED = range(6)
_of_response: Final = attrgetter("response_key")
_of_query: Final = attrgetter("query_key")
_swapped_of: Final = attrgetter("swapped")
_KEYS: Final[Mapping[type[Event], tuple[int, Callable[[Event], Digest]]]] = {
    judging.JudgeQuerySubmitted: (_ASKED, _of_query),
    ResponseGenerated: (_GENERATED, _of_response),
    ResponseFailed: (_FAILED, _of_response),
    judging.VerdictReceived: (_SAID, _of_query),
    judging.JudgeQueryFailed: (_FAILED, _of_query),
    judging.PairReconciled: (_RECONCILED, attrgetter("forward")),
}
KEYED: Final = frozenset(_KEYS)
"""The events with the key of a response or of a query."""


class KeyNotes:
    """Notes of keys, in columns; an outcome names two."""

    def __init__(self) -> None:
        self.keys, self.positions = array("Q"), array("Q")
        self.kinds = bytearray()

    def add(self, events: Sequence[tuple[int, Event]]) -> list[int]:
        """Take note of the keys of events, given with their positions.

        Returns:
            The positions of those with a key that is not a digest: they are not noted.
        """
        keys, positions, kinds = list[Digest](), list[int](), bytearray()
        for position, event in events:
            kind, key_of = _KEYS[type(event)]
            keys.append(key_of(event))
            positions.append(position)
            kinds.append(kind)
            if kind == _RECONCILED:
                keys.append(_swapped_of(event))
                positions.append(position)
                kinds.append(_SWAPPED)
        try:
            self.keys.frombytes(_numbers(keys).tobytes())
        except ValueError:
            alone = len(events) == 1
            return positions[:1] if alone else [at for each in events for at in self.add([each])]
        self.positions.extend(positions)
        self.kinds += kinds
        return []

    def sort(self) -> None:
        """Put them in the order of their keys, so that many are joined with little more work."""
        keys, positions = np.array(self.keys), np.array(self.positions)
        order = np.argsort(keys, kind="stable")
        self.keys = array("Q", keys[order].tobytes())
        self.positions = array("Q", positions[order].tobytes())
        self.kinds = bytearray(np.frombuffer(self.kinds, np.uint8)[order])


def _numbers(keys: Iterable[Digest]) -> Numbers:
    """Return the beginning of each key as a number.

    Raises:
        ValueError: A key is not a digest.
    """
    beginnings = [key[:_N_HEX] for key in keys]
    digits = bytes.fromhex("".join(beginnings))
    if 2 * len(digits) != _N_HEX * len(beginnings):  # one is shorter, or has a space
        raise ValueError("a key is not a digest")
    return np.frombuffer(digits, ">u8").astype(np.uint64)


class KeyPlaces(NamedTuple):
    """The positions of the events with some keys, in order of their keys."""

    keys: Numbers
    places: Numbers
    kinds: NDArray[np.uint8]

    @classmethod
    def of(cls, notes: Iterable[KeyNotes]) -> "KeyPlaces":
        """Put notes in order, those of earlier events first."""
        all_notes = [KeyNotes(), *notes]
        keys = np.concatenate([np.array(each.keys) for each in all_notes])
        order = np.argsort(keys, kind="stable")
        places = np.concatenate([np.array(each.positions) for each in all_notes])
        kinds = np.concatenate([np.frombuffer(each.kinds, np.uint8) for each in all_notes])
        return cls(keys[order], places[order], kinds[order])

    def found_by_key(self, until: int) -> "KeyPlaces":
        """Return where to find what settles a pair, up to a position."""
        chosen = (self.kinds != _ASKED) & (self.kinds != _SWAPPED) & (self.places <= until)
        return KeyPlaces(self.keys[chosen], self.places[chosen], self.kinds[chosen])

    def positions(self, keys: Iterable[Digest]) -> list[int]:
        """Return the positions of the events with some keys, and perhaps of a few others.

        Args:
            keys: Digests.
        """
        sought = np.sort(_numbers(keys))  # in order, which is faster to search
        found: list[int] = _in_order(self.places[self._with_keys(sought)]).tolist()
        return found

    def to_compare(self, doubtful: Numbers) -> Numbers:
        """Return the positions of all events that must be looked at together.

        Those are doubtful events, answers that are there twice, and whatever shares a key with
        them, directly or not.

        Args:
            doubtful: The positions of events that may not follow from those before them.
        """
        twice = [_repeated(self.keys[self.kinds == kind]) for kind in (_GENERATED, _SAID)]
        keys = _in_order(np.concatenate([*twice, self._keys_at(doubtful)]))
        n_keys, positions = -1, doubtful
        while len(keys) > n_keys:
            n_keys = len(keys)
            positions = _in_order(self.places[self._with_keys(keys)])
            keys = _in_order(self._keys_at(positions))
        return positions

    def _keys_at(self, positions: Numbers) -> Numbers:
        """Return the keys of the events at some positions."""
        return self.keys[np.isin(self.places, positions)]

    def _with_keys(self, in_order: Numbers) -> NDArray[np.intp]:
        """Return where in these columns some keys are."""
        first, last = (self.keys.searchsorted(in_order, side) for side in ("left", "right"))
        n_found = last - first
        nth = np.arange(n_found.sum()) - np.repeat(n_found.cumsum() - n_found, n_found)
        return np.asarray(np.repeat(first, n_found) + nth)


def _in_order(numbers: Numbers) -> Numbers:
    """Return numbers in order, each once; `np.unique` makes a table of many, which takes longer."""
    found = np.sort(numbers)
    return np.concatenate([found[:1], found[1:][found[1:] != found[:-1]]])


def _repeated(in_order: Numbers) -> Numbers:
    return np.asarray(in_order[1:][in_order[1:] == in_order[:-1]])
