"""Confidence intervals: Wilson's for shares, cluster-robust ones for ratios of sums.

Samples of one cluster share a prompt and are not independent: their deviations are added up before
they are squared (Liang and Zeger 1986; for evaluations of language models Miller 2024).
"""

from collections.abc import Hashable, Sequence
from math import ceil, exp, isnan, sqrt
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def known(value: float) -> float | None:
    """Return a number, or None for NaN."""
    return None if isnan(value) else float(value)


ROUNDING: Final = 1e-9  # 40 * (1 - 0.95) / 2 is no whole number


def fewest_resamples(level: float) -> int:
    """Return the fewest resamples with one beyond each bound: n (1 - level) / 2 >= 1."""
    return ceil(2 * (1 - ROUNDING) / (1 - level))


def too_few_resamples(resamples: int, level: float) -> str | None:
    """Return an error message for too few resamples; None if there are enough."""
    fewest = fewest_resamples(level)
    if resamples >= fewest:
        return None
    return f"a {100 * level:g} % interval needs at least {fewest:,} resamples"


FEWEST_CLUSTERS: Final = 5
"""Prompts that an interval takes: on fewer, how much they differ is as good as unknown."""

NORMAL_95: Final = 1.959963984540054  # half width of a 95 % interval in standard errors


class Interval(NamedTuple):
    """Two bounds of a share, both in [0, 1]."""

    lower: float
    upper: float


def wilson(share: float, n: float) -> Interval:
    """Return the 95 % interval of a share found in n independent trials (Wilson 1927).

    With z = 1.96 it is all p for which |share - p| <= z sqrt(p (1 - p) / n):

        (share + z^2 / 2n +- z sqrt(share (1 - share) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    A share of half points, as of ties, varies less than one of successes, and the interval is
    then wider than it need be.
    """
    part = NORMAL_95 * NORMAL_95 / n
    half = sqrt(part * share * (1.0 - share) + part * part / 4.0)
    middle, whole = share + part / 2.0, 1.0 + part
    return Interval(max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole))


_LARGEST_LOG: Final = 300.0  # beyond, as of a text that is one long word, squares overflow
_ROUNDING: Final = 1e-12  # an error of a share below is that of sums of floats

Scale: TypeAlias = Literal["plain", "share", "exponential"]
"""What is made of a quotient: itself, itself where it lies in [0, 1], or its exponential."""


class RatioTerms(NamedTuple):
    """Each sample's terms in the two sums of a ratio, (n,) each; denominator 0 leaves it out.

    A mean has denominator 1 for each sample.
    """

    numerators: Floats
    denominators: Floats


class Estimate(NamedTuple):
    """A number and its 95 % interval; None where it is not defined."""

    value: float | None
    n: int  # samples that count
    standard_error: float | None  # None: of fewer than two clusters
    low: float | None
    high: float | None


def estimate_ratio(quotient: RatioTerms, clusters: Sequence[Hashable], scale: Scale) -> Estimate:
    """Estimate a quotient R = sum y / sum x, or exp R.

    The standard error is sqrt(C / (C - 1) sum over C clusters of (sum of (y - R x) / sum x)^2):
    by the delta method, with C / (C - 1) for few clusters. Of a mean of independent samples it is
    their standard deviation over sqrt(n).

    Args:
        quotient: What is divided.
        clusters: Of each sample.
        scale: An interval of a share is Wilson's, of as many independent trials as would have that
            standard error: where all samples agree it is not a point. That of an exponential is
            the exponential of R's.
    """
    counts = quotient.denominators > 0
    n = int(counts.sum())
    if not n:
        return Estimate(None, 0, None, None, None)
    places = _places(clusters)[counts]
    ratio, influence = _linear(_where(quotient, counts))
    error = _error(influence, places)
    if scale == "exponential":
        return _exponential(ratio, n, error)
    if error is None:
        return Estimate(ratio, n, None, None, None)
    if scale == "plain":
        return Estimate(ratio, n, error, ratio - NORMAL_95 * error, ratio + NORMAL_95 * error)
    return Estimate(ratio, n, error, *_share(ratio, error, len(np.unique(places))))


def estimate_difference(
    a: RatioTerms, b: RatioTerms, clusters: Sequence[str], scale: Scale
) -> Estimate:
    """Estimate how much larger b's quotient is than a's, sample by sample.

    Args:
        a: Of one entrant.
        b: Of the other, on the same samples. Divided by something else than a's it measures
            something else, and there is no difference.
        clusters: Of each sample.
        scale: What is made of either quotient before they are compared.
    """
    counts = a.denominators > 0
    n = int(counts.sum())
    if not n or not np.array_equal(a.denominators, b.denominators):
        return Estimate(None, n, None, None, None)
    first, second = (_scaled(_linear(_where(each, counts)), scale) for each in (a, b))
    if first is None or second is None:
        return Estimate(None, n, None, None, None)
    value = second.ratio - first.ratio
    error = _error(second.influence - first.influence, _places(clusters)[counts])
    if error is None:
        return Estimate(value, n, None, None, None)
    return Estimate(value, n, error, value - NORMAL_95 * error, value + NORMAL_95 * error)


def _where(quotient: RatioTerms, mask: NDArray[np.bool_]) -> RatioTerms:
    return RatioTerms(quotient.numerators[mask], quotient.denominators[mask])


def _places(clusters: Sequence[Hashable]) -> NDArray[np.intp]:
    """Number the clusters, (n,)."""
    number = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    return np.array([number[cluster] for cluster in clusters], dtype=np.intp)


class _Linear(NamedTuple):
    """A ratio, and the influence of each sample on it to first order, (n,)."""

    ratio: float
    influence: Floats


def _linear(quotient: RatioTerms) -> _Linear:
    whole = float(quotient.denominators.sum())
    ratio = float(quotient.numerators.sum()) / whole
    return _Linear(ratio, (quotient.numerators - ratio * quotient.denominators) / whole)


def _scaled(linear: _Linear, scale: Scale) -> _Linear | None:
    if scale != "exponential":
        return linear
    value = _exp(linear.ratio)
    return None if value is None else _Linear(value, value * linear.influence)


def _error(influence: Floats, places: NDArray[np.intp]) -> float | None:
    n_clusters = len(np.unique(places))
    if n_clusters == 1:
        return None
    moved = np.bincount(places, influence)
    return sqrt(n_clusters / (n_clusters - 1) * float(moved @ moved))


def _share(ratio: float, error: float, n_clusters: int) -> Interval:
    """Return Wilson's interval; for n independent samples it is that of n."""
    if error < _ROUNDING:
        return wilson(ratio, n_clusters)
    return wilson(ratio, ratio * (1 - ratio) / error**2 * n_clusters / (n_clusters - 1))


def _exponential(ratio: float, n: int, error: float | None) -> Estimate:
    value = _exp(ratio)
    if value is None or error is None:
        return Estimate(value, n, None, None, None)
    low, high = _exp(ratio - NORMAL_95 * error), _exp(ratio + NORMAL_95 * error)
    return Estimate(value, n, value * error, low, high)


def _exp(x: float) -> float | None:
    return exp(x) if x < _LARGEST_LOG else None
