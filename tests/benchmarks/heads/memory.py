"""What heads weigh that share all but what LoRA changes, against heads that share nothing.

Counted on torch's meta device, whose tensors have sizes and identities but no contents.
"""

import copy
from collections.abc import Iterator

import torch
from torch import nn

from tests.benchmarks.bench import Bench
from tests.benchmarks.heads.random_hydra import (
    DEPTH,
    N_HEADS,
    SEVEN_B,
    SMALL,
    Shape,
    random_hydra,
    random_model,
    scaled,
)
from tests.benchmarks.table import Row, compared


def measure(bench: Bench) -> Iterator[Row]:
    """Compare bytes of weights."""
    yield _compared("nine heads, float32", scaled(SMALL, bench), torch.float32, N_HEADS)
    # the tenth says how probably an answer is correct
    seven_b = scaled(SEVEN_B, bench)
    yield _compared("ten heads at 7B shapes, bfloat16", seven_b, torch.bfloat16, N_HEADS + 1)


def _compared(name: str, shape: Shape, dtype: torch.dtype, n_heads: int) -> Row:
    with torch.device("meta"):
        model = random_model(shape, dtype)
        shared = n_bytes(random_hydra(model, n_heads=n_heads))
        copies = (copy.deepcopy(model.model.layers[-DEPTH:]) for _ in range(n_heads - 1))
        copied = n_bytes(nn.ModuleList([model, *copies]))
    return compared(
        f"memory of {name}",
        f"{shared / 1e9:.2f} GB",
        f"copied heads: {copied / 1e9:.2f} GB",
        shared / copied,
    )


def n_bytes(module: nn.Module) -> int:
    """Return the bytes of all tensors; those in one place are counted once."""
    storages = (tensor.untyped_storage() for tensor in (*module.parameters(), *module.buffers()))
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())
