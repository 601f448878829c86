"""Views small enough to keep between commands: what all events of some types add up to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from ledger.recorded import Recorded

State = TypeVar("State", bound=msgspec.Struct)


@dataclass(frozen=True)
class View(Generic[State]):
    """A projection with a name and a version: its state may be stored and folded on later.

    Whoever changes what `advance` makes of an event raises the version.
    """

    name: str
    version: int
    reads: frozenset[str]  # the types of events that it looks at
    initial: State
    advance: Callable[[State, Iterable[Recorded]], State]

    def dump(self, state: State) -> bytes:
        """Return the one spelling of a state."""
        return msgspec.json.encode(state, order="deterministic")

    def load(self, stored: bytes) -> State:
        """Return a state that was stored.

        Raises:
            ValueError: It has another shape.
        """
        return msgspec.json.decode(stored, type=type(self.initial))
