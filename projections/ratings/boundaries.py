"""Critical values of several looks at the same growing evidence.

Of the 5 % of worlds without a difference in which one may be found, each look spends a part. How
much all looks together may spend depends on the share of the evidence that is there (Lan and DeMets
1983). So the critical value of a look is what the largest |z| of all differences exceeds so often,
in worlds where no earlier look found any. It is simulated: evidence grows by independent steps, and
the ratings of equals vary by their covariance.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import erfc, inf, log, pi, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats

ALPHA: Final = 0.05
"""How often some look finds a difference where there is none, at most."""
N_DRAWS: Final = 100_000
"""Of worlds, unless there are very many differences."""
_FEWEST_DRAWS: Final = 20_000
_WORK: Final = 20_000_000  # worlds times differences
DECIMALS: Final = 4
"""Of critical values, which are simulated."""
_SEED: Final = 20260427
_JITTER: Final = 1e-9  # of a variance
_N_NODES: Final = 200  # of an integral
_FAR: Final = 10.0  # above any z
_CLOSE: Final = 1e-9
_NORMAL: Final = NormalDist()
_beyond: Final = np.vectorize(lambda z: erfc(z / sqrt(2)), otypes=[np.float64])  # P(|Z| > z)
_Draws: TypeAlias = NDArray[np.float32]

Spending: TypeAlias = Callable[[float], float]
"""How much of ALPHA all looks may spend together while a share of the evidence is there."""


class Schedule(NamedTuple):
    """The share of the evidence that each of all looks has, ascending to 1, and how they decide.

    `critical` are the values of the looks before this one, as they were taken. `is_open_ended`:
    there may be any number of looks, at any time; so each needs more evidence. `futile` is the
    chance of a decision below which a pair is asked no more.
    """

    shares: Sequence[float]
    critical: Sequence[float] = ()
    is_open_ended: bool = False
    futile: float = 0.01

    @property
    def share(self) -> float:
        """The share of the evidence that this look has."""
        return self.shares[len(self.critical)]


class Contrasts(NamedTuple):
    """Differences of ratings: (n, n) covariance, and of m pairs (m,) places and standard error."""

    covariance: Floats
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    error: Floats

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> "Contrasts":
        """Select pairs."""
        return Contrasts(self.covariance, self.a[chosen], self.b[chosen], self.error[chosen])


def late(share: float) -> float:
    """Spend almost nothing early, as O'Brien and Fleming (1979) do: 2 - 2 Phi(1.96 / sqrt t)."""
    return 2 - 2 * _NORMAL.cdf(_NORMAL.inv_cdf(1 - ALPHA / 2) / sqrt(share))


def gradual(share: float) -> float:
    """Spend by the cube of the share (Kim and DeMets 1987), to find large differences sooner."""
    return ALPHA * share**3


def critical_values(
    contrasts: Contrasts, schedule: Schedule, *, n_draws: int | None = None
) -> Sequence[float]:
    """Return the critical value of |z| at each look; of those taken before, what they used.

    Infinite where a look may spend nothing yet. `n_draws` is the number of worlds; None: as many as
    differences leave time for.
    """
    if schedule.is_open_ended:
        (single,) = critical_values(contrasts, Schedule((1.0,)), n_draws=n_draws)
        return [mixture(share, single) for share in schedule.shares]
    n = len(contrasts.covariance)
    n_draws = n_draws or max(_FEWEST_DRAWS, min(N_DRAWS, _WORK // len(contrasts.error)))
    spread, scale = root(contrasts.covariance), (1 / contrasts.error).astype(np.float32)
    walk = np.zeros((n_draws, n), dtype=np.float32)  # of worlds where nothing was found yet
    critical, before = list[float](), 0.0
    for look, share in enumerate(schedule.shares):
        steps = _steps(len(schedule.shares), n_draws, n)[look, : len(walk)]
        walk += np.float32(sqrt(max(0.0, share - before))) * (steps @ spread)
        largest = _largest(walk, contrasts, scale) / np.float32(sqrt(share))
        if look < len(schedule.critical):
            value = schedule.critical[look]
        else:
            n_kept = n_draws - int(late(share) * n_draws)
            value = _exceeded_by(largest, len(largest) - n_kept)
        critical.append(value)
        walk, before = walk[largest < value], share
    return critical


def mixture(share: float, single: float) -> float:
    """Return the |z| that equals exceed at any time at all as rarely as `single` at one time.

    A normal mixture, tightest halfway: sqrt((1 + r / t) ln((1 + t / r) / a^2)) at a share t of the
    evidence, where a is the level of `single`.
    """
    beyond = -2 * log(2 * _NORMAL.cdf(-single))
    rate = 0.5 / (beyond + log(beyond) + 1)
    return round(sqrt((1 + rate / share) * (log(1 + share / rate) + beyond)), DECIMALS)


@lru_cache(maxsize=64)
def levels(shares: tuple[float, ...], spending: Spending = gradual) -> Sequence[float]:
    """Return the level of a single difference's interval at each look.

    With these levels either end of the interval is wrong at some look in 2.5 % of cases at most.
    The density of z sqrt(t) in worlds where no look found anything is integrated look by look
    (Armitage, McPherson and Rowe 1969).
    """
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    places, chances = np.zeros(1), np.ones(1)  # of z sqrt(t), and how likely each is
    single_levels, before, spent = list[float](), 0.0, 0.0
    for share in shares:
        scale = sqrt(share - before)
        edge = _edge(places, chances, scale, spending(share) - spent)
        single_levels.append(1 - _beyond(edge / sqrt(share)))
        steps = (edge * nodes[:, None] - places) / scale
        chances = edge * weights * (np.exp(-(steps**2) / 2) @ chances) / (scale * sqrt(2 * pi))
        places, before, spent = edge * nodes, share, spending(share)
    return single_levels


def _edge(places: Floats, chances: Floats, scale: float, due: float) -> float:
    """Return the distance from 0 that a random step from these places passes with a chance.

    Args:
        places: Where z sqrt(t) may be before the step.
        chances: How likely each place is.
        scale: The step's standard deviation.
        due: The chance.
    """
    low, high = 0.0, _FAR
    while high - low > _CLOSE:
        middle = (low + high) / 2
        is_exceeded_more = chances @ _beyond((middle - places) / scale) > due
        low, high = (middle, high) if is_exceeded_more else (low, middle)
    return high


@lru_cache(maxsize=2)  # of all looks and of a single one: worlds are the same for all pairs
def _steps(n_looks: int, n_draws: int, n: int) -> _Draws:
    """Draw how the evidence on n entrants grows from look to look in each world."""
    drawn = np.random.default_rng(_SEED).standard_normal((n_looks, n_draws, n), dtype=np.float32)
    drawn.flags.writeable = False
    return drawn


def root(covariance: Floats) -> _Draws:
    """Return R' with R R' the covariance, which is singular: only differences are known."""
    jitter = _JITTER * (covariance.diagonal().mean() + _JITTER)
    return np.linalg.cholesky(covariance + jitter * np.eye(len(covariance))).T.astype(np.float32)


def _largest(walk: _Draws, contrasts: Contrasts, scale: _Draws) -> _Draws:
    """Return the largest |difference| over its error of each draw, a pair at a time."""
    largest = np.zeros(len(walk), dtype=np.float32)
    for a, b, by in zip(contrasts.a, contrasts.b, scale, strict=True):
        np.maximum(largest, np.abs(walk[:, a] - walk[:, b]) * by, out=largest)
    return largest


def _exceeded_by(largest: _Draws, n: int) -> float:
    """Return the value that n of the draws reach; infinite if none may."""
    if n <= 0:
        return inf
    return round(float(np.partition(largest, -n)[-n]), DECIMALS)
