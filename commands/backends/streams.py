"""A stream of random numbers for every row, of its own seed alone.

The streams are the CPU's, whatever device computes: so what a row draws depends neither on the
batch's size and order, nor on its neighbours, nor on the device.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import torch

CPU: Final = torch.device("cpu")


def random_stream(seed: int) -> torch.Generator:
    """Start a CPU generator from a seed mixed by SHA-256, so that near seeds give far streams.

    What is mixed in fixes every text that was ever sampled: another prefix would change them all.
    """
    mixed = hashlib.sha256(f"tourney.gumbel:{seed}".encode()).digest()
    return torch.Generator("cpu").manual_seed(int.from_bytes(mixed[:8], "big"))


def uniforms(
    streams: Sequence[torch.Generator], n: int, device: torch.device = CPU
) -> torch.Tensor:
    """Draw the next n uniforms of each of B streams: (B, n) in [0, 1), on the device.

    They are float64; on Apple's GPUs, which have none, float32.
    """
    drawn = torch.stack([torch.rand(n, generator=s, dtype=torch.float64) for s in streams])
    return (cut_to_float32(drawn) if device.type == "mps" else drawn).to(device)  # (B, n)


def cut_to_float32(uniform: torch.Tensor) -> torch.Tensor:
    """Cut float64 uniforms in [0, 1) to float32's 24 bits: rounding would make some of them 1."""
    return ((uniform * 2**24).floor() / 2**24).float()
