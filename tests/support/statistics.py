"""Distributions to try a sampler with, and Pearson's test of what it drew."""

import math
from typing import Final

import torch
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from commands.backends.weights.sampling import row_key, uniforms

MIN_EXPECTED: Final = 5  # of a cell: with fewer the statistic is not near a chi-square any more


def chi_square_p(observed: torch.Tensor, expected: torch.Tensor) -> float:
    """Return how probable counts at least as far off are; 0 where the impossible was observed.

    The rarest cells are counted as one, until it is expected MIN_EXPECTED times.

    Args:
        observed: (k,) counts.
        expected: (k,) float counts, of the same sum.
    """
    if observed[expected == 0].any():
        return 0.0
    order = expected.argsort()
    observed, expected = observed[order].double(), expected[order].double()
    n_rare = int(
        max((expected < MIN_EXPECTED).sum(), (expected.cumsum(0) < MIN_EXPECTED).sum() + 1)
    )
    observed, expected = _rare_as_one(observed, n_rare), _rare_as_one(expected, n_rare)
    statistic = ((observed - expected) ** 2 / expected).sum()
    half_freedom = torch.tensor((len(expected) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(half_freedom, statistic / 2))


def _rare_as_one(counts: torch.Tensor, n_rare: int) -> torch.Tensor:
    return torch.cat([counts[:n_rare].sum().unsqueeze(0), counts[n_rare:]])


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


def many_uniforms(n_rows: int, n: int, seed: int = 1) -> torch.Tensor:
    """Give (n_rows, n) uniforms."""
    return uniforms(torch.tensor(row_key(seed)), torch.arange(n_rows), n)


def holds(low: float | None, value: float, high: float | None) -> bool:
    """Say whether there is an interval, and a value in it."""
    return low is not None and high is not None and low <= value <= high
