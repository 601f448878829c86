"""The tokens of a batch: as many as the user names, or as free memory holds.

What free memory holds is rounded down to a power of two, so that it stays the same while about as
much is free: in half precision the shape of a batch can change a token.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import psutil  # type: ignore[import-untyped]  # it has no types
import torch

from commands.backends.hydra.weights import LoadedHydra
from commands.backends.weights.loaded import LoadedWeights

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
