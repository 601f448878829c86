"""Projections and fold: an initial state, and the state after more events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ledger.recorded import Recorded

State = TypeVar("State")


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
