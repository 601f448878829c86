"""The logistic function."""

import numpy as np

from projections.resamples import Floats


def sigma(log_odds: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), as exact where it is nearly 0 as where it is not.

    sigma(-x) is what is left to 1, as exact.
    """
    return np.exp(np.minimum(log_odds, 0.0)) / (1.0 + np.exp(-np.abs(log_odds)))
