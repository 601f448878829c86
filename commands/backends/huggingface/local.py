"""Generate, and compute log-likelihoods, with entrants' weights in this process.

A batch has as many tokens as the user names, or as free memory holds, rounded down to a power of
two, so that it stays the same while about as much is free: in half precision the shape of a batch
can change a token.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import psutil  # type: ignore[import-untyped]  # it has no types
import torch

from commands.backends.huggingface.generator import Answer, answer_tasks, is_chat
from commands.backends.huggingface.reader import Likelihood, read_continuations
from commands.backends.hydra.weights import check_hydra, load_hydra
from commands.backends.loads import group_by, load_key, most_tokens
from commands.backends.weights.loaded import (
    LoadedWeights,
    check_chat,
    check_weights,
    free_memory,
    load_weights,
    prepare_device,
)
from commands.ports import Continuation, GenerationTask
from ledger.events.registration import Entrant

Load: TypeAlias = Callable[[Entrant, torch.device], LoadedWeights]
FreeBytes: TypeAlias = Callable[[torch.device], int]
"""Counts the bytes that are free on a device."""

_LEAST_TOKENS: Final = 1 << 10  # a batch that does not fit after all is halved
_SHARE: Final = 0.75  # of free memory: the rest is for what is not counted here
_TINY: Final = 1 << 26  # bytes of weights: several threads would wait for each other
_N_THREADS: Final = torch.get_num_threads()


def load_entrant(entrant: Entrant, device: torch.device) -> LoadedWeights:
    """Load an entrant's weights, plain or as a Hydra.

    Raises:
        WeightsError: A file is missing, unreadable, or fits the others only in part.
    """
    files = Path(entrant.weights).rglob("*")
    n_bytes = sum(file.stat().st_size for file in files if file.is_file())
    torch.set_num_threads(1 if n_bytes < _TINY else _N_THREADS)
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


def free_bytes(device: torch.device) -> int:
    """Return the free memory of a GPU, or of the machine; what torch holds unused is free."""
    if device.type != "cuda":
        return int(psutil.virtual_memory().available)
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def batch_budget(named: int | None, loaded: LoadedWeights, free: FreeBytes = free_bytes) -> int:
    """Return the tokens of a batch, padding included.

    Args:
        named: By the user; None if free memory decides.
        loaded: The weights, which are on their device: its free memory is for batches.
        free: Counts the free memory.
    """
    if named is not None:
        return named
    n_fitting = int(_SHARE * free(loaded.device)) // loaded.token_bytes
    power_of_two = 1 << max(n_fitting.bit_length() - 1, 0)
    return min(max(power_of_two, _LEAST_TOKENS), most_tokens(on_gpu=loaded.device.type != "cpu"))


Work = TypeVar("Work", GenerationTask, Continuation)
Result = TypeVar("Result")
Do: TypeAlias = Callable[[LoadedWeights, Sequence[Work], int], Iterator[tuple[Result, ...]]]


class LocalModels:
    """A `Generator` and a `LikelihoodModel` that share the last load.

    A load is weights, adapters or shards, and dtype. Entrants that share one work together, and it
    is freed before the next.
    """

    def __init__(
        self,
        batch_tokens: int | None,
        device: str = "auto",
        load: Load = load_entrant,
    ) -> None:
        """Set the token budget of a batch (inputs, padding and new tokens) and the device.

        Args:
            batch_tokens: None: as many as free memory holds.
            device: "auto" is the best one available.
            load: Loads an entrant.

        Raises:
            ConfigurationError: The device is not available.
        """
        self._batch_tokens = batch_tokens
        self._device = prepare_device(device)
        self._load = load
        self._loaded: tuple[Hashable, LoadedWeights] | None = None

    def generate(self, tasks: Sequence[GenerationTask]) -> Iterator[tuple[Answer, ...]]:
        """Check the entrants, then yield what each finished batch made, each task exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; its faults, but those of the
                tensors of its weights, are found here, before the first answer of any.
        """
        chats = {task.entrant for task in tasks if is_chat(task)}
        for entrant in chats if len(chats) > 1 else ():
            check_chat(entrant)
        return self._load_by_load(tasks, answer_tasks)

    def log_likelihoods(
        self, continuations: Sequence[Continuation]
    ) -> Iterator[tuple[Likelihood, ...]]:
        """Yield the results of each finished batch, each continuation exactly once.

        Raises:
            WeightsError: An entrant cannot be loaded as registered; most faults are found before
                the first result.
        """
        return self._load_by_load(continuations, read_continuations)

    def _load_by_load(
        self, works: Sequence[Work], do: "Do[Work, Result]"
    ) -> Iterator[tuple[Result, ...]]:
        """Do the work of one load after another; the entrants are checked at once."""
        loads = group_by(works, lambda continuation: load_key(continuation.entrant))
        if len(loads) > 1:  # the faults of a single one show when it is loaded
            check_entrants(same_load[0].entrant for same_load in loads)
        return (batch for same_load in loads for batch in self._do(same_load, do))

    def _do(
        self, same_load: Sequence[Work], do: "Do[Work, Result]"
    ) -> Iterator[tuple[Result, ...]]:
        loaded = self._take(same_load[0].entrant)
        return do(loaded, same_load, batch_budget(self._batch_tokens, loaded))

    def _take(self, entrant: Entrant) -> LoadedWeights:
        """Return an entrant's weights; another load is freed first, as both may not fit."""
        key = load_key(entrant)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None
            free_memory(self._device)
            self._loaded = key, self._load(entrant, self._device)
        return self._loaded[1]
