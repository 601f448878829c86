"""Newton's method on concave log-likelihoods, many side by side."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.pair_model import Derivatives
from projections.resamples import Floats

_MOST_STEPS: Final = 200  # no strength goes further than as many units


class Climb(NamedTuple):
    """Where it led: parameters, (batch, k), and which of the batch came to rest, (batch,)."""

    parameters: Floats
    settled: NDArray[np.bool_]


def climb(derivatives: Derivatives, start: Floats, *, n_strengths: int, tolerance: float) -> Climb:
    """Climb to the maxima of log-likelihoods of log-linear models.

    A step changes no logarithm of odds by more than its span, the range of its strengths and what
    it adds to the others; it is shortened to a span of 1. The third derivative along a step is at
    most span times the second, and so every such step goes up (Bach 2010).

    Args:
        derivatives: Of the log-likelihoods.
        start: Parameters to start from, (batch, k).
        n_strengths: How many of the k, the first, are strengths.
        tolerance: A step of less span is the last; what is missing after it is about its square.
    """
    parameters = start
    for _ in range(_MOST_STEPS):
        gradient, information = derivatives(parameters)
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        span = np.ptp(step[:, :n_strengths], axis=1) + np.abs(step[:, n_strengths:]).sum(axis=1)
        parameters = parameters + step / np.maximum(span, 1.0)[:, None]
        settled = span < tolerance
        if settled.all():
            break
    return Climb(parameters, settled)
