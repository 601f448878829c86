"""Spread work over Ray actors, one for each accelerator.

This process cuts the work into chunks, hands them out and yields what comes back; actors know
nothing of the ledger. An actor that dies is replaced, and only its chunk is done again.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, TypeAlias

import ray
from ray.exceptions import RayError, RayTaskError

from commands import ports
from commands.backends.cluster.session import Place, connected, places
from commands.backends.cluster.shares import (
    Backends,
    Port,
    ShareActor,
    ShareResult,
    WorkChunk,
    chunks,
    n_tokens,
)
from commands.backends.huggingface.worker import most_tokens
from commands.errors import ReplicaFailed, counted
from commands.settings.schema import GenerationSection
from ledger.events.registration import Entrant

_MOST_DEATHS: Final = 3  # at one chunk, or at starting in one place
_BATCHES: Final = 4  # in a chunk: enough to sort by length within it
_TURNS: Final = 2  # chunks of each actor at least, so that none waits long for the last
_LOOK_S: Final = 5.0  # after which one looks whether Ray is still there
_N_LOOKS: Final = 12  # after which the user is told that no accelerator is free

CheckEntrants: TypeAlias = Callable[[Iterable[Entrant]], None]
"""Looks for faults in what entrants are loaded from; it raises WeightsError."""


class ChunkQueue:
    """The chunks that nobody does now, by load."""

    def __init__(self, waiting: Iterable[WorkChunk]) -> None:
        self._waiting: dict[Hashable, deque[WorkChunk]] = {}
        for chunk in waiting:
            self._waiting.setdefault(chunk.load, deque()).append(chunk)

    def __len__(self) -> int:
        """Count the chunks."""
        return sum(map(len, self._waiting.values()))

    def take(self, load: Hashable, others: Iterable[Hashable] = ()) -> WorkChunk | None:
        """Remove and return the next chunk, of an actor's load if there is one.

        Else it is of the load with the most chunks for each of the `others` that have it.
        """
        has = Counter(others)
        waiting = {key: same for key, same in self._waiting.items() if same}
        if not waiting:
            return None
        if load not in waiting:
            load = max(waiting, key=lambda key: len(waiting[key]) / (1 + has[key]))
        return waiting[load].popleft()

    def put_back(self, chunk: WorkChunk) -> None:
        """Return a chunk to its place."""
        self._waiting[chunk.load].appendleft(chunk)


class Seat:
    """A place in the cluster, with at most one actor."""

    def __init__(self, place: Place, make: Callable[[], Backends]) -> None:
        """Leave the place empty; `make` is called in each actor."""
        self._place, self._make = place, make
        self._actor: Any = None
        self.load: Hashable = None  # of its last chunk
        self.pending: Any = None  # the reference of what the actor does now
        self.chunk: WorkChunk | None = None  # of that; None while the actor starts
        self.n_failed_starts = 0

    def fill(self, queue: ChunkQueue, seats: Sequence["Seat"]) -> None:
        """Start an actor if there is a chunk for it, or give an idle one its next chunk."""
        if self.pending is not None:
            return
        if self._actor is None:
            n_starting = sum(seat.pending is not None and seat.chunk is None for seat in seats)
            if len(queue) > n_starting:
                options = self._place._asdict()
                self._actor = ray.remote(ShareActor).options(**options).remote(self._make)
                self.pending = self._actor.is_up.remote()
        elif chunk := queue.take(self.load, [seat.load for seat in seats if seat is not self]):
            self.chunk, self.load = chunk, chunk.load
            self.pending = self._actor.share.remote(chunk.port, chunk.work)

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


@contextmanager
def ray_pool(
    make: Callable[[], Backends],
    check: CheckEntrants,
    generation: GenerationSection,
    tell: ports.Tell,
) -> Iterator["RayPool"]:
    """Connect to Ray, and yield the actors of all its accelerators.

    Args:
        make: Makes an actor's backends; it is called in their processes.
        check: Checks what entrants are loaded from; it is called in this process.
        generation: Names the device and the token budget of a batch.
        tell: Reports long waits for an accelerator.

    Raises:
        ConfigurationError: The cluster does not answer, or has nothing to compute on.
    """
    with connected() as is_own:
        where = places(_nodes(), generation)
        pool = RayPool(make, check, where, generation.batch_tokens, tell, is_alone=is_own)
        try:
            yield pool
        finally:
            pool.close()


def _nodes() -> list[dict[str, Any]]:
    return ray.nodes()  # type: ignore[no-untyped-call,no-any-return]  # Ray does not type it


class RayPool:
    """A `Generator` and a `LikelihoodModel`, one of each in every actor."""

    def __init__(
        self,
        make: Callable[[], Backends],
        check: CheckEntrants,
        where: Sequence[Place],
        batch_tokens: int | None,
        tell: ports.Tell,
        *,
        is_alone: bool = False,
    ) -> None:
        """Take the places for actors, which start with the first work.

        If it is alone, no other machine can take over from this one.
        """
        self._seats = [Seat(place, make) for place in where]
        self._check = check
        on_gpu = any(place.num_gpus for place in where)
        self._most = _BATCHES * (batch_tokens or most_tokens(on_gpu=on_gpu))
        self._tell, self._is_alone = tell, is_alone

    def generate(
        self, tasks: Sequence[ports.GenerationTask]
    ) -> Iterator[tuple[ports.GeneratedText | ports.GenerationFailure, ...]]:
        """Answer tasks on all actors, and yield each chunk when it is done.

        Raises:
            ReplicaFailed: An actor failed, or a chunk's actors keep dying.
            WeightsError: A Hydra's files do not fit; nothing was generated.
        """
        yield from self._do("generate", tasks)

    def log_likelihoods(
        self, continuations: Sequence[ports.Continuation]
    ) -> Iterator[tuple[ports.ContinuationLikelihood | ports.LikelihoodFailure, ...]]:
        """Have actors compute log-likelihoods; continuations of one context stay together.

        Raises:
            ReplicaFailed: An actor failed, or a chunk's actors keep dying.
            WeightsError: A Hydra's files do not fit; nothing was computed.
        """
        yield from self._do("log_likelihoods", continuations)

    def close(self) -> None:
        """End all actors."""
        for seat in self._seats:
            seat.empty()

    def _do(self, port: Port, work: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        entrants = {each.entrant.digest: each.entrant for each in work}.values()
        self._check(each for each in entrants if each.hydra is not None)
        queue = ChunkQueue(WorkChunk(port, cut) for cut in chunks(work, self._budget(work)))
        failures: list[str] = []
        try:
            while (queue and not failures) or any(seat.chunk for seat in self._seats):
                if not failures:
                    self._fill(queue)
                yield from self._next(queue, failures)
        finally:  # what nobody waits for any more
            for seat in self._seats:
                if seat.chunk is not None:
                    seat.empty()
        if failures:
            raise ReplicaFailed(failures)

    def _budget(self, work: Sequence[Any]) -> int:
        share = sum(map(n_tokens, work)) // (_TURNS * len(self._seats))
        return min(self._most, share)

    def _fill(self, queue: ChunkQueue) -> None:
        for seat in self._seats:
            seat.fill(queue, self._seats)

    def _next(self, queue: ChunkQueue, failures: list[str]) -> Iterator[tuple[Any, ...]]:
        """Wait for the next actor that has done something, and yield what it made."""
        seat = self._first_done()
        try:
            made = seat.result()
        except RayTaskError:
            raise  # a bug, which keeps its traceback
        except RayError as error:
            self._replace(seat, queue, error)
            return
        if made is None:
            return
        if made.failure is not None:
            failures.append(made.failure)
        else:
            self._fill(queue)  # before anything is recorded: nobody should wait for that
        yield from made.batches

    def _first_done(self) -> Seat:
        by_pending = {seat.pending: seat for seat in self._seats if seat.pending is not None}
        is_idle = all(seat.chunk is None for seat in self._seats)
        for n_looks in count(1):
            done, _ = ray.wait(list(by_pending), timeout=_LOOK_S)
            if done:
                return by_pending[done[0]]
            self._require_ray()
            if is_idle and n_looks == _N_LOOKS:
                self._tell("waiting until Ray has a free accelerator; see `ray status`")
        raise AssertionError

    def _require_ray(self) -> None:
        """Require that a Ray of one's own is there: no actor would ever start in it again.

        Raises:
            ReplicaFailed: It ended.
        """
        if self._is_alone and not any(node["Alive"] for node in _nodes()):
            fault = "the Ray that this command started ended: its process `raylet` is gone, killed"
            remedy = "or out of memory; run the same command again"
            raise ReplicaFailed([f"{fault} {remedy}"])

    def _replace(self, seat: Seat, queue: ChunkQueue, error: RayError) -> None:
        """Empty the seat of an actor that died, and put its chunk back.

        Raises:
            ReplicaFailed: It was one too many.
        """
        self._tell("a process of Ray died; another does its work again")
        why = " ".join(str(error).split())
        chunk = seat.chunk
        seat.empty()
        if chunk is None:
            seat.n_failed_starts += 1
            if seat.n_failed_starts == _MOST_DEATHS:
                raise ReplicaFailed([f"{_NO_START}; the last time: {why}"])
            return
        chunk.n_deaths += 1
        if chunk.n_deaths == _MOST_DEATHS:
            work = counted(len(chunk.work), "response or sample", "responses or samples")
            raise ReplicaFailed([f"{_MOST_DEATHS} processes died at the same {work}: {why}"])
        queue.put_back(chunk)


_NO_START: Final = (
    f"a process did not start on the cluster, {_MOST_DEATHS} times: install the same version of"
    " tourney-ledger[models,ray] on all its machines"
)
