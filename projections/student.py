"""Student's t distribution: tail probabilities and critical values, of any degrees of freedom.

P(|T| >= t) is the regularised incomplete beta function I_x(df / 2, 1 / 2) at x = df / (df + t^2),
computed by its continued fraction (DLMF 8.17.22) with Lentz's method.
"""

from functools import lru_cache
from math import lgamma
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]

_AS_NORMAL: Final = 10_000.0  # degrees of freedom from which t is normal to 4 digits
_CLOSE: Final = 1e-9  # a step of Newton's method, whose error is then the square of it
_EXACT: Final = 1e-11
_ROUNDING: Final = 1e-6  # degrees of freedom: far above what is lost in computing them
_log_gamma: Final = np.vectorize(lgamma, otypes=[np.float64])


def two_sided_p(t: _Floats, freedom: _Floats) -> _Floats:
    """Return P(|T| >= t), elementwise, for t of 0 or more; NaN where either is NaN."""
    t, freedom = np.broadcast_arrays(t, np.minimum(freedom, _AS_NORMAL))
    a, x = freedom / 2, freedom / (freedom + t * t)
    y = t * t / (freedom + t * t)
    front = x**a * np.sqrt(y) * np.exp(_log_gamma(a + 0.5) - _log_gamma(a)) / np.sqrt(np.pi)
    is_tail = x < (a + 1) / (a + 2.5)
    p, q = np.where(is_tail, a, 0.5), np.where(is_tail, 0.5, a)
    part = front / p * _fraction(p, q, np.where(is_tail, x, y))
    return np.asarray(np.where(np.isnan(t), np.nan, np.where(is_tail, part, 1.0 - part)))


def critical_value(level: float, freedom: _Floats) -> _Floats:
    """Return t with P(|T| < t) = level, elementwise; NaN where the degrees of freedom are NaN.

    Degrees of freedom are rounded down to a whole number, 1 at least; one that is whole but for its
    last bits, which processors do not agree on, counts as whole. Newton's method finds log t:
    log p is concave in it, so that after the first step all come from one side.
    """
    rounded = np.floor(np.clip(freedom, 1, _AS_NORMAL) + _ROUNDING)
    whole, place = np.unique(rounded, return_inverse=True)
    return np.asarray(_of_whole(level, tuple(whole.tolist()))[place].reshape(np.shape(freedom)))


@lru_cache(maxsize=1024)  # a look, a gate and a resample ask for the same again and again
def _of_whole(level: float, whole: tuple[float, ...]) -> _Floats:
    freedom = np.array(whole)
    t = np.full(freedom.shape, NormalDist().inv_cdf((1 + level) / 2))
    change = np.ones_like(t)
    while (np.abs(change) > _CLOSE).any():
        p = two_sided_p(t, freedom)
        change = p * np.log(p / (1 - level)) / (2 * t * _density(t, freedom))
        t = t * np.exp(change)
    return t


def portable_critical_value(level: float, freedom: _Floats) -> _Floats:
    """Return critical values to six decimals, for what is published and must replay elsewhere.

    Processors differ in the last bit of exp and log.
    """
    return np.asarray(np.round(critical_value(level, freedom), 6))


def _density(t: _Floats, freedom: _Floats) -> _Floats:
    scale = np.exp(_log_gamma((freedom + 1) / 2) - _log_gamma(freedom / 2))
    return np.asarray(
        scale / np.sqrt(np.pi * freedom) * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
    )


def _fraction(a: _Floats, b: _Floats, x: _Floats) -> _Floats:
    """Return the continued fraction 1 / (1 + d1 / (1 + d2 / (1 + ...))) of I_x(a, b)."""
    c, d = np.ones_like(x), 1.0 / (1.0 - (a + b) * x / (a + 1))
    value, change, m = d, np.full_like(x, np.inf), 0
    while (np.abs(change - 1.0) > _EXACT).any():
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = np.ones_like(x)
        for term in (even, odd):
            d, c = 1.0 / (1.0 + term * d), 1.0 + term / c
            change = change * c * d
        value = value * change
    return np.asarray(value)
