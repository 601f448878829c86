"""Load entrants' weights, keep the last load, and do work grouped by load."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch

from commands.backends.huggingface.budget import FreeBytes, batch_budget, free_bytes
from commands.backends.hydra.weights import LoadedHydra, check_hydra, load_hydra
from commands.backends.weights.batching import group_by
from commands.backends.weights.loaded import (
    LoadedWeights,
    check_weights,
    free_memory,
    load_weights,
    prepare_device,
)
from commands.ports import Continuation, GenerationTask
from ledger.events.registration import Entrant

Loaded = LoadedWeights | LoadedHydra
Load = Callable[[Entrant, torch.device], Loaded]


def load_entrant(entrant: Entrant, device: torch.device) -> Loaded:
    """Load an entrant's weights, plain or as a Hydra.

    Raises:
        WeightsError: A file is missing, unreadable, or fits the others only in part.
    """
    if entrant.hydra is None:
        return load_weights(entrant, device)
    return load_hydra(entrant, entrant.hydra, device)


def check_entrants(entrants: Iterable[Entrant]) -> None:
    """Check what entrants are loaded from, so that faults of all show before the first answer.

    Raises:
        WeightsError: Weights are of a family that transformers does not have, need a package that
            is not installed, or have a tokenizer or adapter that is unreadable or does not fit.
    """
    for entrant in entrants:
        if entrant.hydra is not None:
            check_hydra(entrant, entrant.hydra)
        else:
            check_weights(entrant)


def load_key(entrant: Entrant) -> Hashable:
    """Return a key that is equal for entrants that load the same files."""
    adapters = tuple(adapter.digest for adapter in entrant.adapters)
    heads = entrant.hydra and (
        entrant.hydra.heads_depth,
        tuple(shard.digest for shard in entrant.hydra.security),
        tuple(shard.digest for shard in entrant.hydra.robustness),
        entrant.hydra.uncertainty and entrant.hydra.uncertainty.digest,
    )
    return entrant.weights_digest, adapters, heads, entrant.dtype


class LastLoaded:
    """Loads entrants and keeps the last load, so that the same is not loaded twice in a row.

    The generator and the likelihood model of an entrant share it.
    """

    def __init__(self, load: Load = load_entrant) -> None:
        self._load = load
        self._key: Hashable = None
        self._loaded: Loaded | None = None

    def __call__(self, entrant: Entrant, device: torch.device) -> Loaded:
        """Return an entrant's weights; another load is freed first, as both may not fit.

        Raises:
            WeightsError: They cannot be loaded.
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
    """Base of the generator and the likelihood model: works load by load, in batches.

    A load is weights, adapters or shards, and dtype. Entrants that share one work together, and it
    is freed before the next.
    """

    def __init__(
        self,
        batch_tokens: int | None,
        device: str = "auto",
        cpu_threads: int | None = None,
        load: Load = load_entrant,
        free: FreeBytes = free_bytes,
    ) -> None:
        """Set the token budget of a batch (inputs, padding and new tokens) and the device.

        Args:
            batch_tokens: None: as many as free memory holds.
            device: "auto" is the best one available.
            cpu_threads: For the whole process; None leaves torch's choice.
            load: Loads an entrant.
            free: Counts the free memory.

        Raises:
            ConfigurationError: The device is not available.
        """
        self._batch_tokens, self._free = batch_tokens, free
        self._device = prepare_device(device, cpu_threads)
        self._load = load

    def _budget(self, loaded: Loaded) -> int:
        """Return the token budget of a batch."""
        return batch_budget(self._batch_tokens, loaded, self._free)

    def _load_by_load(
        self,
        works: Sequence[Work],
        do: Callable[[Loaded, Sequence[Work]], Iterator[Finished]],
    ) -> Iterator[Finished]:
        """Do the work of one load after another; the entrants are checked at once.

        Only `do` may hold a reference to a load, or two would be in memory at once.
        """
        loads = group_by(works, lambda each: load_key(each.entrant))
        if len(loads) > 1:  # the faults of a single one show when it is loaded
            check_entrants(same_load[0].entrant for same_load in loads)
        return self._do_each(loads, do)

    def _do_each(
        self,
        loads: Sequence[Sequence[Work]],
        do: Callable[[Loaded, Sequence[Work]], Iterator[Finished]],
    ) -> Iterator[Finished]:
        for n, same_load in enumerate(loads):
            if n:
                free_memory(self._device)  # of the load before
            yield from do(self._load(same_load[0].entrant, self._device), same_load)
