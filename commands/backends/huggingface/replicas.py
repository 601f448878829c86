"""Spread evaluations over several GPUs of one host, with a copy of the weights on each.

`accelerate launch --num_processes N $(which tourney) apply evaluate` starts N processes. The first
one plans, writes the ledger and does a share of the work; the others only do their shares. Every
sample has its own random stream, so results do not depend on N.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from accelerate import PartialState  # type: ignore[import-untyped]  # it has no types
from accelerate.utils import broadcast_object_list, gather_object  # type: ignore[import-untyped]  # as above

from commands import ports
from commands.errors import ReplicaFailed
from ledger.errors import TourneyError

_PATIENCE = timedelta(days=7)  # the others wait while the first plans or a longer share runs

Work = TypeVar("Work")


class _Assignment(NamedTuple):
    """The work of all processes for one call."""

    what: Literal["generate", "log_likelihoods"]
    work: Sequence[Any]


class _ShareResult(NamedTuple):
    """The result of a process's share."""

    batches: tuple[tuple[Any, ...], ...]
    failure: str | None  # of the whole share


class ReplicaGroup:
    """A `Generator` and a `LikelihoodModel`, one of each on every process and device."""

    def __init__(
        self, make: Callable[[str], tuple[ports.Generator, ports.LikelihoodModel]]
    ) -> None:
        """Join the other processes; `make` takes the name of a device."""
        has_gpu = torch.cuda.is_available()
        self._here = PartialState(cpu=not has_gpu, timeout=_PATIENCE)
        device = f"cuda:{self._here.local_process_index}" if has_gpu else "cpu"
        self._generator, self._reader = make(device)

    @property
    def is_main(self) -> bool:
        """Whether this is the first process."""
        return bool(self._here.is_main_process)

    def generate(
        self, tasks: Sequence[ports.GenerationTask]
    ) -> Iterator[tuple[ports.GeneratedText | ports.GenerationFailure, ...]]:
        """Answer tasks on all processes.

        Raises:
            ReplicaFailed: A process failed.
        """
        yield from self._on_all_processes(_Assignment("generate", tasks))

    def log_likelihoods(
        self, continuations: Sequence[ports.Continuation]
    ) -> Iterator[tuple[ports.ContinuationLikelihood | ports.LikelihoodFailure, ...]]:
        """Have every process weigh a share; continuations of one context stay together.

        Raises:
            ReplicaFailed: A process failed.
        """
        yield from self._on_all_processes(_Assignment("log_likelihoods", continuations))

    def serve(self) -> None:
        """Do shares until the first process has no more work."""
        while (call := self._broadcast(None)) is not None:
            gather_object([self._share(call)])
        self._disconnect()

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Distribute work within the block, and dismiss the other processes at its end.

        After an unexpected error nothing is sent, as the others may be waiting for results; the
        launcher ends them with this process.
        """
        try:
            yield
        except TourneyError:
            self._dismiss()
            raise
        self._dismiss()

    def _on_all_processes(self, call: _Assignment) -> Iterator[tuple[Any, ...]]:
        self._broadcast(call)
        every: list[_ShareResult] = gather_object([self._share(call)])
        for done in every:
            yield from done.batches
        if failures := [done.failure for done in every if done.failure is not None]:
            raise ReplicaFailed(failures)

    def _dismiss(self) -> None:
        self._broadcast(None)
        self._disconnect()

    def _disconnect(self) -> None:
        """Leave the process group, whose threads could otherwise abort this process at exit."""
        self._here.destroy_process_group()

    def _broadcast(self, call: _Assignment | None) -> _Assignment | None:
        """Send a call from the first process to all, and return it on each."""
        said: list[_Assignment | None] = [call]
        broadcast_object_list(said, from_process=0)
        return said[0]

    def _share(self, call: _Assignment) -> _ShareResult:
        """Do this process's share; batches before a failure count."""
        key = _context if call.what == "log_likelihoods" else attrgetter("response_key")
        mine = deal(call.work, key, self._here.num_processes)[self._here.process_index]
        batches: list[tuple[Any, ...]] = []
        try:
            working = (
                self._reader.log_likelihoods(mine)
                if call.what == "log_likelihoods"
                else self._generator.generate(mine)
            )
            batches.extend(working)
        except TourneyError as error:
            return _ShareResult(tuple(batches), str(error))
        return _ShareResult(tuple(batches), None)


def deal(work: Sequence[Work], key: Callable[[Work], Hashable], n: int) -> tuple[list[Work], ...]:
    """Deal work to n hands in turn; work with the same key goes to the same hand."""
    turns: dict[Hashable, int] = {}
    hands: tuple[list[Work], ...] = tuple([] for _ in range(n))
    for each in work:
        hands[turns.setdefault(key(each), len(turns)) % n].append(each)
    return hands


def _context(passage: ports.Continuation) -> Hashable:
    return passage.context or passage.key
