"""Projections and fold: an initial state, and the state after more events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

from ledger.recorded import Recorded

State = TypeVar("State")
Other = TypeVar("Other")
_AT_ONCE: Final = 10_000  # events


@dataclass(frozen=True)
class Projection(Generic[State]):
    """A way to read events.

    Two laws hold for each: folding may stop and resume, and equal events give equal states.
    """

    initial: State
    advance: Callable[[State, Iterable[Recorded]], State]


def fold(
    projection: Projection[State], events: Iterable[Recorded], start: State | None = None
) -> State:
    """Return the state after the events, from the initial state or an earlier one."""
    return projection.advance(projection.initial if start is None else start, events)


def both(first: Projection[State], second: Projection[Other]) -> Projection[tuple[State, Other]]:
    """Return the projection to two states, for which events are read once."""

    def advance(states: tuple[State, Other], events: Iterable[Recorded]) -> tuple[State, Other]:
        coming = iter(events)
        while some := list(islice(coming, _AT_ONCE)):
            states = first.advance(states[0], some), second.advance(states[1], some)
        return states

    return Projection((first.initial, second.initial), advance)
