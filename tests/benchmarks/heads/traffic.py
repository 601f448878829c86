"""How many bytes must be read from memory to decode: what bounds its speed where sums are free."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import cast

import torch
from torch import nn
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention

from commands.backends.hydra.net import HydraNet


def bytes_read(net: HydraNet, act: Callable[[], object]) -> int:
    """Return the bytes of weights and caches that something reads, each once in every pass.

    The embeddings are not among them: of these a pass reads as many rows as it has tokens.
    """
    n_bytes = 0

    def count(module: nn.Module, _: object, options: Mapping[str, object], __: object) -> None:
        nonlocal n_bytes
        n_bytes += sum(weight.nbytes for weight in module.parameters(recurse=False))
        if isinstance(module, Olmo2Attention):
            cache = cast("DynamicCache", options["past_key_values"])
            n_bytes += cache_bytes(
                cast("DynamicLayer", cache.layers[cast("int", module.layer_idx)])
            )

    with ExitStack() as hooks:
        for module in net.modules():
            if not isinstance(module, nn.Embedding):
                hooks.enter_context(module.register_forward_hook(count, with_kwargs=True))
        act()
    return n_bytes


def cache_bytes(layer: DynamicLayer) -> int:
    """Return the bytes of a layer's keys and values."""
    return sum(cast("torch.Tensor", each).nbytes for each in (layer.keys, layer.values))
