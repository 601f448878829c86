"""Distributions and uniforms to try a sampler with."""

import math
from typing import Final

import torch
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from commands.backends.weights.sampling import random_stream, uniforms

OUT: Final = -math.inf
P: Final = torch.tensor([0.0, 0.3, 0.0, 0.05, 0.15, 0.5, 0.0])


@st.composite
def many_logits(draw: DrawFn, max_experts: int = 4, *, may_rule_out: bool = False) -> torch.Tensor:
    """Draw (E, V) logits; token 0 is always possible."""
    n_experts, n_tokens = draw(st.integers(1, max_experts)), draw(st.integers(2, 6))
    logit = st.floats(-8, 8)
    other = logit | st.just(OUT) if may_rule_out else logit
    rows = [[draw(logit), *(draw(other) for _ in range(n_tokens - 1))] for _ in range(n_experts)]
    return torch.tensor(rows)


def many_uniforms(n: int, seed: int = 1) -> torch.Tensor:
    """Give (n,) uniforms."""
    return uniforms([random_stream(seed)], n)[0]
