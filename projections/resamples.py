"""How many resamples a bootstrap's interval takes: fewer claim a level that they cannot tell."""

from math import ceil
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

ROUNDING: Final = 1e-9  # 40 * (1 - 0.95) / 2 is no whole number


def fewest_resamples(level: float) -> int:
    """Return how few resamples leave one out beyond each bound: n (1 - level) / 2 >= 1."""
    return ceil(2 * (1 - ROUNDING) / (1 - level))


def shortage(resamples: int, level: float) -> str | None:
    """Say what is wrong with too few resamples; None of enough."""
    fewest = fewest_resamples(level)
    if resamples >= fewest:
        return None
    takes = f"an interval of {100 * level:g} % takes {fewest:,} resamples at least"
    return f"{takes}, so that one is beyond each bound"
