"""Spread work over several GPUs of one host, with a copy of the weights on each.

`accelerate launch --num_processes N $(which tourney) apply generate` starts N processes. The first
one plans, writes the ledger and does a share of the work; the others only do their shares. Every
response and sample has its own random stream, so results do not depend on N.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from accelerate import PartialState  # type: ignore[import-untyped]  # it has no types
from accelerate.utils import broadcast_object_list, gather_object  # type: ignore[import-untyped]  # as above

from commands import ports
from commands.backends.huggingface.shares import (
    Assignment,
    Backends,
    ShareResult,
    chunk_budget,
    chunks,
    deal,
    do_share,
    together,
)
from commands.errors import ConfigurationError, ReplicaFailed
from ledger.errors import TourneyError

_PATIENCE = timedelta(days=7)  # the others wait while the first plans or a longer share runs


class ReplicaGroup:
    """A `Generator` and a `LikelihoodModel`, one of each on every process and device."""

    def __init__(
        self, make: Callable[[str], Backends], batch_tokens: int | None, device: str = "auto"
    ) -> None:
        """Join the other processes.

        Args:
            make: Takes the name of a device. What it returns keeps its weights between calls.
            batch_tokens: Token budget of a batch; None if free memory decides.
            device: The kind to use; each process has a GPU of its own, unless it is the CPU.

        Raises:
            ConfigurationError: This machine has more processes than GPUs.
        """
        has_gpu = device != "cpu" and torch.cuda.is_available()
        if has_gpu:
            _require_gpus(int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
        self._here = PartialState(cpu=not has_gpu, timeout=_PATIENCE)
        device = f"cuda:{self._here.local_process_index}" if has_gpu else "cpu"
        self._backends: Backends | None = make(device)
        self._budget = chunk_budget(batch_tokens, self._here.num_processes, on_gpu=has_gpu)

    @property
    def is_main(self) -> bool:
        """Whether this is the first process."""
        return bool(self._here.is_main_process)

    def generate(
        self, tasks: Sequence[ports.GenerationTask]
    ) -> Iterator[tuple[ports.GeneratedText | ports.GenerationFailure, ...]]:
        """Answer tasks on all processes, chunk by chunk.

        Raises:
            ReplicaFailed: A process failed.
        """
        for chunk in chunks(tasks, self._budget):
            yield from self._on_all_processes(Assignment("generate", chunk))

    def log_likelihoods(
        self, continuations: Sequence[ports.Continuation]
    ) -> Iterator[tuple[ports.ContinuationLikelihood | ports.LikelihoodFailure, ...]]:
        """Have every process do a share; continuations of one context stay together.

        Raises:
            ReplicaFailed: A process failed.
        """
        for chunk in chunks(continuations, self._budget):
            yield from self._on_all_processes(Assignment("log_likelihoods", chunk))

    def serve(self) -> None:
        """Do shares until the first process has no more work."""
        while (call := self._broadcast(None)) is not None:
            gather_object([self._share(call)])
        self._leave()

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Distribute work within the block; at its end dismiss the others and free the weights.

        Inside such a block another one may end the work earlier. After an unexpected error nothing
        is sent, as the others may be waiting for results; the launcher ends them with this process.
        """
        try:
            yield
        except TourneyError:
            self._dismiss()
            raise
        self._dismiss()

    def _on_all_processes(self, call: Assignment) -> Iterator[tuple[Any, ...]]:
        self._broadcast(call)
        every: list[ShareResult] = gather_object([self._share(call)])
        for done in every:
            yield from done.batches
        if failures := [done.failure for done in every if done.failure is not None]:
            raise ReplicaFailed(failures)

    def _dismiss(self) -> None:
        if self._backends is not None:
            self._broadcast(None)
            self._leave()

    def _leave(self) -> None:
        """Leave the process group, whose threads could otherwise abort this process at exit."""
        self._backends = None
        self._here.destroy_process_group()

    def _broadcast(self, call: Assignment | None) -> Assignment | None:
        """Send a call from the first process to all, and return it on each."""
        said: list[Assignment | None] = [call]
        broadcast_object_list(said, from_process=0)
        return said[0]

    def _share(self, call: Assignment) -> ShareResult:
        """Do this process's share; batches before a failure count."""
        mine = deal(call.work, together, self._here.num_processes)[self._here.process_index]
        return do_share(self._made, call._replace(work=mine))

    def _made(self) -> Backends:
        if self._backends is None:
            raise ValueError("the other processes were dismissed, and do no more work")
        return self._backends


def _require_gpus(n_processes: int) -> None:
    """Require a GPU for each process of this machine.

    Raises:
        ConfigurationError: There are too few.
    """
    n_gpus = torch.cuda.device_count()
    if n_processes > n_gpus:
        fault = (
            f"the launcher started {n_processes} processes, but {n_gpus} GPUs are here; start one"
            ' for each, or set [generation] device = "cpu"'
        )
        raise ConfigurationError([fault])
