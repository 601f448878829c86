"""Pearson's test: could these counts have come from that distribution?"""

from typing import Final

import torch

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
