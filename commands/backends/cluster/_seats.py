"""Queue chunks of work, and assign them to actors."""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from commands.backends.cluster._actor import ShareActor
from commands.backends.cluster.session import Place
from commands.backends.huggingface.shares import Assignment, Backends, ShareResult, load_key


@dataclass
class WorkChunk:
    """Work for one actor, and how many actors ended at it."""

    assignment: Assignment
    n_deaths: int = 0

    @property
    def load(self) -> Hashable:
        """What an actor must have loaded to do it."""
        return load_key(self.assignment.work[0].entrant)


class ChunkQueue:
    """The chunks that nobody does now, by load."""

    def __init__(self, chunks: Iterable[WorkChunk]) -> None:
        self._waiting: dict[Hashable, deque[WorkChunk]] = {}
        for chunk in chunks:
            self._waiting.setdefault(chunk.load, deque()).append(chunk)

    def __len__(self) -> int:
        """Count the chunks."""
        return sum(map(len, self._waiting.values()))

    def take(self, load: Hashable) -> WorkChunk | None:
        """Remove and return the next chunk of a load."""
        same = self._waiting.get(load)
        return same.popleft() if same else None

    def put_back(self, chunk: WorkChunk) -> None:
        """Return a chunk to its place."""
        self._waiting[chunk.load].appendleft(chunk)

    def load_to_join(self, seats: Sequence["Seat"]) -> Hashable | None:
        """Return the load with the most chunks for each actor; None if enough are starting."""
        has = Counter(seat.load for seat in seats)
        starting = Counter(seat.load for seat in seats if seat.is_starting)
        short = [load for load, same in self._waiting.items() if len(same) > starting[load]]
        return max(short, key=lambda load: len(self._waiting[load]) / (1 + has[load]), default=None)


class Seat:
    """A place in the cluster, with at most one actor."""

    def __init__(self, place: Place, make: Callable[[], Backends]) -> None:
        """Leave the place empty; `make` is called in each actor."""
        self._place, self._make = place, make
        self._actor: Any = None
        self.load: Hashable = None
        self.pending: Any = None  # the reference of what the actor does now
        self.chunk: WorkChunk | None = None  # of that; None while the actor starts
        self.n_failed_starts = 0

    @property
    def is_starting(self) -> bool:
        """Whether its actor is not up yet."""
        return self.pending is not None and self.chunk is None

    def fill(self, queue: ChunkQueue, seats: Sequence["Seat"]) -> None:
        """Give an idle actor a chunk of its load, or replace it by one of another load."""
        if self.pending is not None:
            return
        self.chunk = queue.take(self.load) if self._actor is not None else None
        if self.chunk is not None:
            self.pending = self._actor.share.remote(self.chunk.assignment)
        elif (load := queue.load_to_join([s for s in seats if s is not self])) is not None:
            self.empty()
            self.load = load
            self._actor = ray.remote(ShareActor).options(**self._place._asdict()).remote(self._make)
            self.pending = self._actor.is_up.remote()

    def result(self) -> ShareResult | None:
        """Return what its actor made; None if it has just started.

        Raises:
            RayError: The actor died, or its machine, or a bug showed in it.
        """
        made = ray.get(self.pending)
        self.pending, self.chunk, self.n_failed_starts = None, None, 0
        return made if isinstance(made, ShareResult) else None

    def empty(self) -> None:
        """End its actor; a chunk that it has is not put back."""
        if self._actor is not None:
            ray.kill(self._actor)
        self._actor = self.pending = self.chunk = self.load = None
