"""What an entrant answers and is read with: loaded, and kept as long as nothing else is needed."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch

from commands.backends.hydra.weights import LoadedHydra, check_hydra, load_hydra
from commands.backends.weights.batching import group_by
from commands.backends.weights.loaded import (
    LoadedWeights,
    free_memory,
    load_weights,
    prepare_device,
)
from commands.ports import Continuation, GenerationTask
from ledger.events.registration import Entrant

Loaded = LoadedWeights | LoadedHydra
Load = Callable[[Entrant, torch.device], Loaded]


def load_entrant(entrant: Entrant, device: torch.device) -> Loaded:
    """Load what an entrant answers with.

    Raises:
        WeightsError: A file is missing, unreadable, or fits the others only in part.
    """
    if entrant.hydra is None:
        return load_weights(entrant, device)
    return load_hydra(entrant, entrant.hydra, device)


def check_hydras(entrants: Iterable[Entrant]) -> None:
    """Find out now what would be told of entrants' heads only when their turn to be loaded comes.

    Raises:
        WeightsError: A shard is unreadable or does not fit the weights, or the tokenizer does not.
    """
    for entrant in entrants:
        if entrant.hydra is not None:
            check_hydra(entrant, entrant.hydra)


def load_key(entrant: Entrant) -> Hashable:
    """Return what an entrant loads."""
    adapters = tuple(adapter.digest for adapter in entrant.adapters)
    heads = entrant.hydra and (
        entrant.hydra.heads_depth,
        tuple(shard.digest for shard in entrant.hydra.security),
        tuple(shard.digest for shard in entrant.hydra.robustness),
        entrant.hydra.uncertainty and entrant.hydra.uncertainty.digest,
    )
    return entrant.weights_digest, adapters, heads, entrant.dtype


class LastLoaded:
    """Loads, and keeps the newest load: who asks for the same again has it at once.

    So what answers and what reads share one load, from one evaluation of an entrant to the next.
    """

    def __init__(self, load: Load = load_entrant) -> None:
        """Begin with nothing loaded."""
        self._load = load
        self._key: Hashable = None
        self._loaded: Loaded | None = None

    def __call__(self, entrant: Entrant, device: torch.device) -> Loaded:
        """Return what an entrant answers with; another's is freed first, as both may not fit.

        Raises:
            WeightsError: A file is missing, unreadable, or fits the others only in part.
        """
        key = load_key(entrant), device
        if self._loaded is None or key != self._key:
            self._loaded = None
            free_memory(device)
            self._loaded = self._load(entrant, device)
            self._key = key
        return self._loaded


Work = TypeVar("Work", GenerationTask, Continuation)
Finished = TypeVar("Finished")


class HfWorker:
    """Works as entrants, load by load and batch by batch.

    A load is weights, adapters or shards, and dtype: entrants that share one work together, and it
    is freed before the next.
    """

    def __init__(
        self,
        batch_tokens: int,
        device: str = "auto",
        cpu_threads: int | None = None,
        load: Load = load_entrant,
    ) -> None:
        """Allow batches of that many tokens: what is read, padding and new tokens together.

        cpu_threads is set for the whole process; None leaves torch's own choice. What `load` keeps
        of its own is not freed.

        Raises:
            ConfigurationError: There is no such device here.
        """
        self._batch_tokens = batch_tokens
        self._device = prepare_device(device, cpu_threads)
        self._load = load

    def _load_by_load(
        self,
        owed: Sequence[Work],
        do: Callable[[Loaded, Sequence[Work]], Iterator[Finished]],
    ) -> Iterator[Finished]:
        """Do the work of one load after the other.

        `do` alone may hold what is loaded, or two loads would be in memory at once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; what can be told of that before
                its turn is told before anything is done.
        """
        loads = group_by(owed, lambda each: load_key(each.entrant))
        check_hydras(same_load[0].entrant for same_load in loads[1:])  # the first comes now
        for n, same_load in enumerate(loads):
            if n:
                free_memory(self._device)  # of the load before
            yield from do(self._load(same_load[0].entrant, self._device), same_load)
