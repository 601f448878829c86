"""Spread work over Ray actors, one for each accelerator.

This process cuts the work into chunks, hands them out and yields what comes back; actors know
nothing of the ledger. A chunk needs one load of weights and fits a token budget, so that what is
lost with an actor is small. One that dies is replaced, and only its chunk is done again.

Ray is a cluster's, this machine's, or started for one command: then it listens on this machine
only, under a key of its own, and leaves no file.
"""

import logging
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from commands import ports
from commands.backends.loads import BatchQueue, LocalBackend, group_by, load_key, most_tokens
from commands.errors import ConfigurationError, ReplicaFailed, counted
from commands.ports import Continuation, GenerationTask
from commands.settings.schema import GenerationSection
from ledger.errors import TourneyError
from ledger.events.registration import Entrant

_QUIET: Final[dict[str, Any]] = {"logging_level": logging.ERROR, "log_to_driver": False}
_OBJECTS_BYTES: Final = 100 * 2**20  # of texts; Ray would reserve a third of the memory
_LONGEST_FOLDER: Final = 40  # characters: the names of Ray's sockets hold 67 more, of 107


class Place(NamedTuple):
    """What one actor occupies."""

    num_cpus: int
    num_gpus: int = 0


@contextmanager
def connected() -> Iterator[bool]:
    """Connect to the Ray of RAY_ADDRESS, else to that of `ray start` here, else to one of our own.

    Yields whether it is of our own: then no other machine can take over.

    Raises:
        ConfigurationError: The cluster does not answer.
    """
    # Ray writes to the standard output, too, where a command's result belongs
    with _variables({"RAY_USAGE_STATS_ENABLED": "0"}), redirect_stdout(sys.stderr):
        try:
            if address := os.environ.get("RAY_ADDRESS") or _started_here():
                _connect(address)
                yield False
            else:
                with _started() as options:
                    ray.init(**options)
                    yield True
        finally:
            ray.shutdown()


def places(nodes: list[dict[str, Any]], generation: GenerationSection) -> list[Place]:
    """Return a place for each GPU of a cluster, or else for each machine.

    Raises:
        ConfigurationError: There is none.
    """
    here = [node["Resources"] for node in nodes if node["Alive"]]
    n_gpus = 0 if generation.device == "cpu" else sum(int(each.get("GPU", 0)) for each in here)
    if n_gpus:
        return [Place(1, 1)] * n_gpus
    n_cpus = (int(each.get("CPU", 0)) for each in here)
    found = [Place(n) for n in n_cpus if n]
    if not found:
        raise ConfigurationError(["Ray has neither GPUs nor CPUs; see `ray status`"])
    return found


def _started_here() -> str | None:
    """Return the address of the Ray that `ray start` began on this machine."""
    noted = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")  # noqa: S108  # Ray's own
    return noted.read_text(encoding="utf-8").strip() if noted.exists() else None


def _connect(address: str) -> None:
    try:
        ray.init(address, **_QUIET)
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        fault = f"Ray at {address} does not answer: {why}; see `ray status`, or unset RAY_ADDRESS"
        raise ConfigurationError([fault]) from error


@contextmanager
def _started() -> Iterator[Mapping[str, Any]]:
    """Yield the options of a Ray for this process alone, whose files are removed at the end."""
    folder = gettempdir() if len(gettempdir()) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108  # as Ray's own
    with (
        _variables({"RAY_AUTH_TOKEN": _own_key()}),  # else Ray writes one to the user's folder
        TemporaryDirectory(prefix="ray-", dir=folder, ignore_cleanup_errors=True) as own,
    ):
        try:
            yield {
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": _OBJECTS_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": own,
                **_QUIET,
            }
        finally:
            ray.shutdown()  # before its folder goes


@cache
def _own_key() -> str:
    """Return a secret of this process; Ray remembers the first that it is given."""
    return secrets.token_hex(32)


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment within the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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


ShareResult: TypeAlias = tuple[tuple[tuple[Any, ...], ...], str | None]
"""The batches of a chunk, and why it failed, if it did; those before a failure count."""


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
            return tuple(batches), str(error)
        return tuple(batches), None


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
                batches, failure = made
                if failure is not None:
                    failures.append(failure)
                else:
                    self.fill(port, waiting)  # before anything is recorded: nobody should wait
                yield from batches
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
