"""Sampling by the Gumbel-max trick, with a random stream of its own for every row.

argmax(logits / temperature + g) with independent g = -log(-log(u)), u uniform on (0, 1), is a
draw from softmax(logits / temperature): Gumbel 1954; Maddison, Tarlow and Minka 2014, "A*
Sampling". The noise comes from one CPU generator per row, so a row's tokens depend on its own
seed only: neither on the batch's size and order, nor on its neighbours, nor on the device.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Final, cast

import torch
from transformers import LogitsProcessor, StoppingCriteria

NEVER = torch.iinfo(torch.long).max


class FiniteWatch(LogitsProcessor):
    """Records for each row the first step whose logits have a NaN, an infinity, or no maximum.

    Single logits of minus infinity are allowed: some models exclude tokens that way.
    """

    def __init__(self, n_rows: int, device: torch.device) -> None:
        self.broken_at = torch.full((n_rows,), NEVER, device=device)  # (B,)
        self._step = 0

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores as they are: (B, V) float, the logits of the next token."""
        is_sound = scores.amax(dim=-1).isfinite()  # (B,); amax hands a NaN on
        step = torch.where(is_sound, NEVER, self._step)
        self.broken_at = torch.minimum(self.broken_at, step)
        self._step += 1
        return scores


class StopBrokenRows(StoppingCriteria):
    """Ends a row once its logits are not finite."""

    def __init__(self, watch: FiniteWatch) -> None:
        self._watch = watch

    def __call__(self, _: torch.Tensor, __: object, **___: object) -> torch.BoolTensor:
        """Return (B,) bool, true for the rows to end."""
        return cast("torch.BoolTensor", self._watch.broken_at < NEVER)


def nucleus(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Set all scores to -inf but those of the likeliest tokens with total probability top_p.

    Of equally likely tokens, the one with the lower id comes first.

    Args:
        scores: (..., V) float, logits or log-probabilities at the temperature that is drawn at.
        top_p: Above 0; at 1 the scores are returned as they are.
    """
    if top_p >= 1:
        return scores
    ordered, tokens = scores.sort(dim=-1, descending=True, stable=True)
    p = ordered.float().softmax(-1)  # (..., V)
    likelier = p.cumsum(-1).roll(1, dims=-1)  # (..., V) of all tokens before this one together
    likelier[..., 0] = 0
    ruled_out = torch.zeros_like(tokens, dtype=torch.bool).scatter(-1, tokens, likelier >= top_p)
    return scores.masked_fill(ruled_out, -math.inf)


CPU: Final = torch.device("cpu")


def random_stream(seed: int) -> torch.Generator:
    """Start a CPU generator from a seed mixed by SHA-256, so that near seeds give far streams.

    The prefix must never change: every sampled text depends on it.
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


class GumbelNoise(LogitsProcessor):
    """Adds noise that turns a greedy choice into a sample at a temperature, row by row."""

    def __init__(self, seeds: Sequence[int], temperature: float, top_p: float = 1.0) -> None:
        """Start one random stream per row; seeds[i] belongs to row i.

        Tokens are drawn from the likeliest ones with total probability top_p.
        """
        self._streams = [random_stream(seed) for seed in seeds]
        self._temperature = temperature
        self._top_p = top_p

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores / temperature + noise, for (B, V) float logits of the next token."""
        n_tokens = scores.shape[-1]
        rows = [gumbel_noise(stream, n_tokens) for stream in self._streams]
        noise = torch.stack(rows).to(scores.device)  # (B, V)
        return nucleus(scores / self._temperature, self._top_p) + noise


def gumbel_noise(stream: torch.Generator, n_tokens: int) -> torch.Tensor:
    """Draw (n_tokens,) float32 of standard Gumbel noise.

    The uniforms are float64: with 24 bits the noise would end at 16.6, and rare tokens with it.
    """
    uniform = torch.rand(n_tokens, generator=stream, dtype=torch.float64)  # (V,)
    return -torch.log(-torch.log(uniform)).float()
