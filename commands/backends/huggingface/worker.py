"""Load entrants' weights, keep the last load, and do work grouped by load, in batches.

A batch has as many tokens as the user names, or as free memory holds, rounded down to a power of
two, so that it stays the same while about as much is free: in half precision the shape of a batch
can change a token.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import psutil  # type: ignore[import-untyped]  # it has no types
import torch

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
        self._n_threads = torch.get_num_threads()
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
            torch.set_num_threads(1 if _is_tiny(Path(entrant.weights)) else self._n_threads)
            self._loaded = self._load(entrant, device)
            self._key = key
        return self._loaded


FreeBytes: TypeAlias = Callable[[torch.device], int]
"""Counts the bytes that are free on a device."""

_LEAST_TOKENS: Final = 1 << 10  # a batch that does not fit after all is halved
_SHARE: Final = 0.75  # of free memory: the rest is for what is not counted here
_N_CACHES: Final = 2  # a cache stands beside the one that it grows into, or is chosen from
_N_STATES: Final = 4  # of the hidden size, that a layer holds at once
_N_INNER: Final = 3  # of the MLP's size, likewise


def free_bytes(device: torch.device) -> int:
    """Return the free memory of a GPU, or of the machine; what torch holds unused is free."""
    if device.type != "cuda":
        return int(psutil.virtual_memory().available)
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def most_tokens(*, on_gpu: bool) -> int:
    """Return the most tokens of a batch where the user names no number.

    More rows are hardly faster on a CPU, and more is lost with a process.
    """
    return 1 << 16 if on_gpu else 1 << 13


def batch_budget(
    named: int | None, loaded: LoadedWeights | LoadedHydra, free: FreeBytes = free_bytes
) -> int:
    """Return the tokens of a batch, padding included.

    Args:
        named: By the user; None if free memory decides.
        loaded: The weights, which are on their device: its free memory is for batches.
        free: Counts the free memory.
    """
    if named is not None:
        return named
    most = most_tokens(on_gpu=loaded.device.type != "cpu")
    n_fitting = int(_SHARE * free(loaded.device)) // token_bytes(loaded)
    return min(max(_power_of_two_up_to(n_fitting), _LEAST_TOKENS), most)


def _power_of_two_up_to(n: int) -> int:
    return 1 << max(n.bit_length() - 1, 0)


def token_bytes(loaded: LoadedWeights | LoadedHydra) -> int:
    """Estimate the bytes that a token of a batch takes: keys, values, states and logits."""
    if isinstance(loaded, LoadedHydra):
        net, n_heads = loaded.net, loaded.n_heads
        config, dtype = net.head_layers[0].self_attn.config, net.lm_head.weight.dtype
        n_layers = len(net.trunk) + 1 + n_heads * (len(net.head_layers) - 1)
    else:
        model = cast("Any", loaded.model)
        config, dtype, n_heads = model.config.get_text_config(), model.dtype, 1
        n_layers = config.num_hidden_layers
    cached = _N_CACHES * n_layers * _cached_values(config)
    states = n_heads * (_N_STATES * config.hidden_size + _N_INNER * _inner_size(config))
    return int((cached + states + config.vocab_size) * dtype.itemsize)


def _inner_size(config: Any) -> int:  # noqa: ANN401  # families name different things
    inner = getattr(config, "intermediate_size", None)
    return inner if isinstance(inner, int) else 4 * int(config.hidden_size)


def _cached_values(config: Any) -> int:  # noqa: ANN401  # likewise
    """Return how many numbers a layer keeps of a token: keys and values."""
    n_attention_heads = getattr(config, "num_attention_heads", None)
    if not n_attention_heads:  # a state in the place of keys and values
        return 2 * int(config.hidden_size)
    n_heads = getattr(config, "num_key_value_heads", None) or n_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // n_attention_heads
    return 2 * int(n_heads) * int(size)


_TINY: Final = 1 << 26  # bytes


def _is_tiny(folder: Path) -> bool:
    """Say whether weights are so small that several threads would wait for each other."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < _TINY


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
        load: Load = load_entrant,
        free: FreeBytes = free_bytes,
    ) -> None:
        """Set the token budget of a batch (inputs, padding and new tokens) and the device.

        Args:
            batch_tokens: None: as many as free memory holds.
            device: "auto" is the best one available.
            load: Loads an entrant.
            free: Counts the free memory.

        Raises:
            ConfigurationError: The device is not available.
        """
        self._batch_tokens, self._free = batch_tokens, free
        self._device = prepare_device(device)
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
