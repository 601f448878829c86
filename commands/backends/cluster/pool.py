"""Spread work over Ray actors, one for each accelerator.

This process cuts the work into chunks, hands them out and yields what comes back; actors know
nothing of the ledger. A chunk needs one load of weights and fits a token budget, so that what is
lost with an actor is small. One that dies is replaced, and only its chunk is done again.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from commands import ports
from commands.backends.cluster.session import Place, connected, places
from commands.backends.loads import BatchQueue, LocalBackend, group_by, load_key, most_tokens
from commands.errors import ReplicaFailed, counted
from commands.ports import Continuation, GenerationTask
from commands.settings.schema import GenerationSection
from ledger.errors import TourneyError
from ledger.events.registration import Entrant

_MOST_DEATHS: Final = 3  # at one chunk, or at starting in one place
_BATCHES: Final = 4  # in a chunk: enough to sort by length within it
_TURNS: Final = 2  # chunks of each actor at least, so that none waits long for the last
_LOOK_S: Final = 5.0  # after which one looks whether Ray is still there
_N_LOOKS: Final = 12  # after which the user is told that no accelerator is free
_CHARS_PER_TOKEN: Final = 3  # a guess, as the tokenizer is with the weights; English has more

CheckEntrants: TypeAlias = Callable[[Iterable[Entrant]], None]
"""Looks for faults in what entrants are loaded from; it raises WeightsError."""

Work = TypeVar("Work", GenerationTask, Continuation)
Port: TypeAlias = Literal["generate", "log_likelihoods"]


@dataclass(eq=False)
class WorkChunk:
    """Work for one call of a port, and how many actors died at it."""

    work: Sequence[Any]
    load: Hashable  # what an actor must have loaded to do it
    n_deaths: int = 0


class ShareResult(NamedTuple):
    """The results of a chunk; those before a failure count."""

    batches: tuple[tuple[Any, ...], ...]
    failure: str | None = None


class ShareActor:
    """Does chunks in a process of Ray's, and keeps the weights that it loaded last."""

    def __init__(self, make: Callable[[], LocalBackend]) -> None:
        """Take what makes the backend, which the first chunk does: it can tell of failures."""
        self._make = cache(make)

    def is_up(self) -> None:
        """Return once the process runs."""

    def share(self, port: Port, work: Sequence[Any]) -> ShareResult:
        """Do a chunk; failures are values, as Ray cannot send every error."""
        batches: list[tuple[Any, ...]] = []
        try:
            batches.extend(getattr(self._make(), port)(work))
        except TourneyError as error:
            return ShareResult(tuple(batches), str(error))
        return ShareResult(tuple(batches))


@dataclass(eq=False)
class Seat:
    """A place in the cluster, with at most one actor."""

    place: Place
    actor: Any = None
    load: Hashable = None  # of its last chunk
    pending: Any = None  # the reference of what the actor does now
    chunk: WorkChunk | None = None  # of that; None while the actor starts
    n_failed_starts: int = 0

    def empty(self) -> None:
        """End its actor; a chunk that it has is not put back."""
        if self.actor is not None:
            ray.kill(self.actor)
        self.actor = self.pending = self.chunk = self.load = None


def next_chunk(
    waiting: Sequence[WorkChunk], load: Hashable, others: Iterable[Hashable]
) -> WorkChunk:
    """Return the chunk that an actor does next: of its load if there is one.

    Else it is of the load with the most chunks for each of the `others` that have it.
    """
    loads = [chunk.load for chunk in waiting]
    if load not in loads:
        n_chunks, n_actors = Counter(loads), Counter(others)
        load = max(n_chunks, key=lambda key: n_chunks[key] / (1 + n_actors[key]))
    return waiting[loads.index(load)]


def chunks(work: Sequence[Work], budget: int) -> Iterator[WorkChunk]:
    """Cut work into chunks of one load each, load by load, the longest pieces first.

    Args:
        work: Of any entrants.
        budget: The tokens of a chunk, padding included; a single piece may exceed it.
    """
    for of_load in group_by(work, lambda continuation: load_key(continuation.entrant)):
        queue = BatchQueue(of_load, n_tokens, budget)
        while chunk := queue.take():
            yield WorkChunk(chunk, load_key(chunk[0].entrant))


def n_tokens(each: GenerationTask | Continuation) -> int:
    """Estimate the tokens that a piece of work takes in a batch."""
    if isinstance(each, GenerationTask):
        return len(each.prompt_text) // _CHARS_PER_TOKEN + each.entrant.max_new_tokens
    return (len(each.context) + len(each.text)) // _CHARS_PER_TOKEN + 1


@contextmanager
def ray_pool(
    make: Callable[[], LocalBackend],
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
        make: Callable[[], LocalBackend],
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
        self.seats = [Seat(place) for place in where]
        self._make, self._check = make, check
        on_gpu = any(place.num_gpus for place in where)
        self._most = _BATCHES * (batch_tokens or most_tokens(on_gpu=on_gpu))
        self._tell, self._is_alone = tell, is_alone

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[ports.GeneratedText | ports.GenerationFailure, ...]]:
        """Answer tasks on all actors, and yield each chunk when it is done.

        Raises:
            ReplicaFailed: An actor failed, or a chunk's actors keep dying.
            WeightsError: A Hydra's files do not fit; nothing was generated.
        """
        yield from self._do("generate", tasks)

    def log_likelihoods(
        self, continuations: Sequence[Continuation]
    ) -> Iterator[tuple[ports.ContinuationLikelihood | ports.LikelihoodFailure, ...]]:
        """Have actors compute log-likelihoods; continuations of one context stay together.

        Raises:
            ReplicaFailed: An actor failed, or a chunk's actors keep dying.
            WeightsError: A Hydra's files do not fit; nothing was computed.
        """
        yield from self._do("log_likelihoods", continuations)

    def close(self) -> None:
        """End all actors."""
        for seat in self.seats:
            seat.empty()

    def _do(self, port: Port, work: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        entrants = {each.entrant.digest: each.entrant for each in work}.values()
        self._check(entrant for entrant in entrants if entrant.hydra is not None)
        a_turn = sum(map(n_tokens, work)) // (_TURNS * len(self.seats))
        waiting = [*chunks(work, min(self._most, a_turn))]
        failures: list[str] = []
        try:
            while (waiting and not failures) or any(seat.chunk for seat in self.seats):
                if not failures:
                    self.fill(port, waiting)
                seat = self._first_done()
                made = self._result(seat, waiting)
                if made is None:
                    continue
                if made.failure is not None:
                    failures.append(made.failure)
                else:
                    self.fill(port, waiting)  # before anything is recorded: nobody should wait
                yield from made.batches
        finally:  # what nobody waits for any more
            for seat in self.seats:
                if seat.chunk is not None:
                    seat.empty()
        if failures:
            raise ReplicaFailed(failures)

    def fill(self, port: Port, waiting: list[WorkChunk]) -> None:
        """Give each idle actor its next chunk, and start no more actors than there are chunks."""
        n_starting = sum(seat.pending is not None and seat.chunk is None for seat in self.seats)
        for seat in self.seats:
            if seat.pending is not None or not waiting:
                continue
            if seat.actor is not None:
                others = [each.load for each in self.seats if each is not seat]
                chunk = next_chunk(waiting, seat.load, others)
                waiting.remove(chunk)
                seat.chunk, seat.load = chunk, chunk.load
                seat.pending = seat.actor.share.remote(port, chunk.work)
            elif len(waiting) > n_starting:
                options = seat.place._asdict()
                seat.actor = ray.remote(ShareActor).options(**options).remote(self._make)
                seat.pending = seat.actor.is_up.remote()
                n_starting += 1

    def _first_done(self) -> Seat:
        """Wait for the next actor that has done something."""
        by_pending = {seat.pending: seat for seat in self.seats if seat.pending is not None}
        is_idle = all(seat.chunk is None for seat in self.seats)
        for n_looks in count(1):
            done, _ = ray.wait(list(by_pending), timeout=_LOOK_S)
            if done:
                return by_pending[done[0]]
            if self._is_alone and not any(node["Alive"] for node in _nodes()):
                fault = "the Ray that this command started ended: its process `raylet` is gone,"
                remedy = "killed or out of memory; run the same command again"
                raise ReplicaFailed([f"{fault} {remedy}"])
            if is_idle and n_looks == _N_LOOKS:
                self._tell("waiting until Ray has a free accelerator; see `ray status`")
        raise AssertionError

    def _result(self, seat: Seat, waiting: list[WorkChunk]) -> ShareResult | None:
        """Return what an actor made; None if it has just started, or died.

        Raises:
            ReplicaFailed: It was one too many.
        """
        try:
            made: ShareResult | None = ray.get(seat.pending)
        except RayTaskError:
            raise  # a bug, which keeps its traceback
        except RayError as error:
            self._replace(seat, waiting, " ".join(str(error).split()))
            return None
        seat.pending, seat.chunk, seat.n_failed_starts = None, None, 0
        return made

    def _replace(self, seat: Seat, waiting: list[WorkChunk], why: str) -> None:
        """Empty the seat of an actor that died, and put its chunk back."""
        self._tell("a process of Ray died; another does its work again")
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
        waiting.insert(0, chunk)  # the longest are first: a lack of memory shows at once


_NO_START: Final = (
    f"a process did not start on the cluster, {_MOST_DEATHS} times: install the same version of"
    " tourney-ledger[models,ray] on all its machines"
)
