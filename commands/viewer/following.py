"""Follow a ledger that others write to: read new events in the background, and notify the pages."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Final, Generic, TypeVar

from ledger.chain import Head
from ledger.errors import TourneyError
from ledger.store import Ledger
from projections.fold import Projection, fold

StateT = TypeVar("StateT")
ViewT = TypeVar("ViewT")

_SHORTEST_S: Final = 1.0  # between two looks at the ledger
_SHARE: Final = 4  # times what the last view took: so a big one takes a fifth of a core
_ALIVE_S: Final = 15.0  # after which a stream says that it is still there


class LedgerFollower(Generic[StateT, ViewT]):
    """A view of a ledger, computed once for each head at which it was looked at.

    What was folded before is kept, so only new events are read; the ledger is opened for reading
    alone, and closed again each time.
    """

    def __init__(
        self,
        path: Path,
        projection: Projection[StateT],
        view_of: Callable[[StateT, Head], ViewT],
    ) -> None:
        self._path, self._projection, self._view_of = path, projection, view_of
        self._read_to: Head | None = None
        self._state = projection.initial
        self._changed = Condition()
        self._ended = Event()
        self.view: ViewT | None = None  # None: the first is still being computed
        self.position = 0  # up to which the view was read
        self.fault: str | None = None  # why the ledger could not be read the last time

    def refresh(self) -> bool:
        """Read what is new; return whether there is a new view."""
        head, view, fault = None, self.view, None
        try:
            if head := self._read():
                view = self._view_of(self._state, head)
        except TourneyError as error:
            head, fault = None, str(error)
        if head is None and fault == self.fault:
            return False
        with self._changed:
            self.view, self.fault = view, fault
            self.position = head.position if head else self.position
            self._changed.notify_all()
        return head is not None

    def _read(self) -> Head | None:
        """Fold what is new; return the head up to which that is; None: nothing is."""
        with Ledger.read_only(self._path) as ledger:
            head, known = ledger.head, self._read_to
            if head == known:
                return None
            is_longer = known is not None and ledger.chain_at(known.position) == known.chain
            after, state = (known.position, self._state) if known and is_longer else (0, None)
            events = ledger.read(after=after, until=head.position)
            self._state = fold(self._projection, events, state)
        self._read_to = head
        return head

    def start(self) -> Thread:
        """Follow the ledger on a thread of its own, until the end."""
        thread = Thread(target=self._follow, name="ledger", daemon=True)
        thread.start()
        return thread

    def _follow(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            began = time.monotonic()
            self.refresh()
            pause = max(_SHORTEST_S, _SHARE * (time.monotonic() - began))

    def end(self) -> None:
        """Stop following, and end all streams."""
        self._ended.set()
        with self._changed:
            self._changed.notify_all()

    def events(self) -> Iterator[bytes]:
        """Yield server-sent events: the position now, each new one, and signs of life between."""
        told: tuple[int, str | None] | None = None
        yield b"retry: 2000\n\n"
        while not self._ended.is_set():
            now = self._wait_for_news(told)
            yield b": still here\n\n" if now == told else f"data: {now[0]}\n\n".encode()
            told = now

    def _wait_for_news(self, told: tuple[int, str | None] | None) -> tuple[int, str | None]:
        """Return the position and the fault, once they are not what was told, or after a while."""

        def is_news() -> bool:
            return self._ended.is_set() or (self.position, self.fault) != told

        with self._changed:
            self._changed.wait_for(is_news, _ALIVE_S)
            return self.position, self.fault
