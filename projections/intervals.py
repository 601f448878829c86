"""Confidence intervals: Wilson's for shares, cluster-robust ones for ratios, and Student's t.

Samples of one cluster share a prompt and are not independent: their deviations are added up before
they are squared (Liang and Zeger 1986; for evaluations of language models Miller 2024). Few
clusters tell little of how much they differ: an interval is Student's, with a degree of freedom
less than clusters, and on fewer than six there is none (Cameron and Miller 2015, section VI).

P(|T| >= t) is the regularised incomplete beta function I_x(df / 2, 1 / 2) at x = df / (df + t^2),
computed by its continued fraction (DLMF 8.17.22) with Lentz's method.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cache, lru_cache
from math import ceil, exp, fsum, isnan, lgamma, sqrt
from statistics import NormalDist
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_AS_NORMAL: Final = 10_000.0  # degrees of freedom from which t is normal to 4 digits
_CLOSE: Final = 1e-9  # a step of Newton's method, whose error is then the square of it
_EXACT: Final = 1e-11
_LOST: Final = 1e-6  # degrees of freedom: far above what is lost in computing them
_log_gamma: Final = np.vectorize(lgamma, otypes=[np.float64])


def two_sided_p(t: Floats, freedom: Floats) -> Floats:
    """Return P(|T| >= t), elementwise, for t of 0 or more; NaN where either is NaN."""
    t, freedom = np.broadcast_arrays(t, np.minimum(freedom, _AS_NORMAL))
    a, x = freedom / 2, freedom / (freedom + t * t)
    y = t * t / (freedom + t * t)
    front = x**a * np.sqrt(y) * np.exp(_log_gamma(a + 0.5) - _log_gamma(a)) / np.sqrt(np.pi)
    is_tail = x < (a + 1) / (a + 2.5)
    p, q = np.where(is_tail, a, 0.5), np.where(is_tail, 0.5, a)
    part = front / p * _fraction(p, q, np.where(is_tail, x, y))
    return np.asarray(np.where(np.isnan(t), np.nan, np.where(is_tail, part, 1.0 - part)))


def critical_value(level: float, freedom: Floats) -> Floats:
    """Return t with P(|T| < t) = level, elementwise; NaN where the degrees of freedom are NaN.

    Degrees of freedom are rounded down to a whole number, 1 at least; one that is whole but for its
    last bits, which processors do not agree on, counts as whole. Newton's method finds log t:
    log p is concave in it, so that after the first step all come from one side.
    """
    rounded = np.floor(np.clip(freedom, 1, _AS_NORMAL) + _LOST)
    whole, place = np.unique(rounded, return_inverse=True)
    return np.asarray(_of_whole(level, tuple(whole.tolist()))[place].reshape(np.shape(freedom)))


@lru_cache(maxsize=1024)  # a look, a gate and a resample ask for the same again and again
def _of_whole(level: float, whole: tuple[float, ...]) -> Floats:
    freedom = np.array(whole)
    t = np.full(freedom.shape, NormalDist().inv_cdf((1 + level) / 2))
    change = np.ones_like(t)
    while (np.abs(change) > _CLOSE).any():
        p = two_sided_p(t, freedom)
        change = p * np.log(p / (1 - level)) / (2 * t * _density(t, freedom))
        t = t * np.exp(change)
    return t


def portable_critical_value(level: float, freedom: Floats) -> Floats:
    """Return critical values to six decimals, for what is published and must replay elsewhere.

    Processors differ in the last bit of exp and log.
    """
    return np.asarray(np.round(critical_value(level, freedom), 6))


def _density(t: Floats, freedom: Floats) -> Floats:
    scale = np.exp(_log_gamma((freedom + 1) / 2) - _log_gamma(freedom / 2))
    return np.asarray(
        scale / np.sqrt(np.pi * freedom) * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
    )


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
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


FEWEST_CLUSTERS: Final = 6
"""The fewest prompts for an interval: on five, 97.3 % of 95 % intervals contain the truth."""

LEVEL: Final = 0.95
NO_INTERVAL: Final = f"No interval: it takes {FEWEST_CLUSTERS} prompts."
"""What a table notes where a number has none."""

NORMAL_95: Final = 1.959963984540054  # half width of a 95 % interval in standard errors


def wilson(share: float, n: float, z: float = NORMAL_95) -> tuple[float, float]:
    """Return the 95 % interval of a share found in n independent trials (Wilson 1927).

    It is all p for which |share - p| <= z sqrt(p (1 - p) / n), with z = 1.96, or Student's t where
    n is an estimate:

        (share + z^2 / 2n +- z sqrt(share (1 - share) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    A share of half points, as of ties, varies less than one of successes, and the interval is
    then wider than it need be.
    """
    part = z * z / n
    half = sqrt(part * share * (1.0 - share) + part * part / 4.0)
    middle, whole = share + part / 2.0, 1.0 + part
    return (max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole))


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
    low: float | None  # None: of fewer than FEWEST_CLUSTERS, unless each is a trial
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
    spread = _spread(influence, places)
    if scale == "exponential":
        return _exponential(ratio, n, spread)
    if scale == "share" and spread.error is not None:
        return Estimate(ratio, n, spread.error, *_share(ratio, spread.error, spread))
    return Estimate(ratio, n, spread.error, *spread.around(ratio))


def estimate_difference(
    a: RatioTerms, b: RatioTerms, clusters: Sequence[Hashable], scale: Scale
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
    first, second = (_scaled(_linear(_where(terms, counts)), scale) for terms in (a, b))
    if first is None or second is None:
        return Estimate(None, n, None, None, None)
    value = second[0] - first[0]
    spread = _spread(second[1] - first[1], _places(clusters)[counts])
    return Estimate(value, n, spread.error, *spread.around(value))


def jackknife_interval(
    parts: Floats, clusters: Sequence[Hashable], statistic: Callable[[Floats], Floats]
) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of a function of sums, by leaving out each cluster in turn.

    The variance is (C - 1) / C sum over C clusters of (value without it - their mean)^2 (Cameron
    and Miller 2015, section III.B). There is none of too few clusters, if a value is not defined,
    or if no cluster makes a difference: then nothing tells how far the value may be off.

    Args:
        parts: (n, m) what each sample adds to m sums.
        clusters: Of each sample.
        statistic: From (C, m) sums the (C,) values; NaN where not defined.
    """
    places = _places(clusters)
    n = int(places.max(initial=-1)) + 1
    if n < FEWEST_CLUSTERS:
        return None, None
    sums = np.zeros((n, parts.shape[1]))
    np.add.at(sums, places, parts)
    whole = sums.sum(axis=0)
    values = statistic(whole - sums)
    (value,) = statistic(whole[None, :])
    error = sqrt((n - 1) / n * float(((values - values.mean()) ** 2).sum()))
    return _Spread(n, error).around(float(value)) if error > _ROUNDING else (None, None)


def _where(quotient: RatioTerms, mask: NDArray[np.bool_]) -> RatioTerms:
    return RatioTerms(quotient.numerators[mask], quotient.denominators[mask])


def _places(clusters: Sequence[Hashable]) -> NDArray[np.intp]:
    """Number the clusters, (n,)."""
    number = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    return np.array([number[cluster] for cluster in clusters], dtype=np.intp)


_Linear: TypeAlias = tuple[float, Floats]
"""A ratio, and the influence of each sample on it to first order, (n,)."""


def _linear(quotient: RatioTerms) -> _Linear:
    whole = float(quotient.denominators.sum())
    ratio = float(quotient.numerators.sum()) / whole
    return ratio, (quotient.numerators - ratio * quotient.denominators) / whole


def _scaled(linear: _Linear, scale: Scale) -> _Linear | None:
    if scale != "exponential":
        return linear
    ratio, influence = linear
    value = _exp(ratio)
    return None if value is None else (value, value * influence)


class _Spread(NamedTuple):
    """How much a number varies with the clusters."""

    n_clusters: int
    error: float | None  # the standard error; None: of one cluster

    @property
    def t(self) -> float:
        """Half of a 95 % interval's width in standard errors."""
        return _t(self.n_clusters - 1)

    def around(self, value: float) -> tuple[float, float] | tuple[None, None]:
        """Return the bounds; None of too few clusters."""
        if self.error is None or self.n_clusters < FEWEST_CLUSTERS:
            return None, None
        half = self.t * self.error
        return value - half, value + half


@cache
def _t(freedom: int) -> float:
    return float(portable_critical_value(LEVEL, np.array(float(freedom))))


def _spread(influence: Floats, places: NDArray[np.intp]) -> _Spread:
    n = int(np.count_nonzero(np.bincount(places)))
    if n == 1:
        return _Spread(n, None)
    moved = np.bincount(places, influence)
    squares = fsum(moved * moved)  # exactly rounded: processors differ in the order of a product
    return _Spread(n, sqrt(n / (n - 1) * squares))


def _share(ratio: float, error: float, spread: _Spread) -> tuple[float, float] | tuple[None, None]:
    """Return Wilson's interval; for n independent samples it is that of n.

    Of trials that succeed or fail, one a cluster, the error follows from the share: no number of
    them is too small, and t is not needed. A share of 0 or 1 with an error may be anything: taking
    off a slot effect leaves samples below 0 and above 1.
    """
    n = spread.n_clusters
    if error < _ROUNDING:
        return wilson(ratio, n)
    n_trials = ratio * (1 - ratio) / error**2 * n / (n - 1)
    if abs(n_trials - n) < ROUNDING * n:
        return wilson(ratio, n)
    if n < FEWEST_CLUSTERS:
        return None, None
    return wilson(ratio, n_trials, spread.t) if n_trials > 0 else (0.0, 1.0)


def _exponential(ratio: float, n: int, spread: _Spread) -> Estimate:
    value = _exp(ratio)
    if value is None or spread.error is None:
        return Estimate(value, n, None, None, None)
    low, high = (None if bound is None else _exp(bound) for bound in spread.around(ratio))
    return Estimate(value, n, value * spread.error, low, high)


def _exp(x: float) -> float | None:
    return exp(x) if x < _LARGEST_LOG else None
