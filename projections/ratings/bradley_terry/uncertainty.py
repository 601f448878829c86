"""Uncertainty of a fit: bootstrap resamples of clusters, and the sandwich covariance.

Multinomial: as many clusters as there are, drawn with replacement (Efron 1979). Bayesian: each
cluster weighs as a draw of gamma(1, 1) (Rubin 1981; Newton and Raftery 1994); as none weighs 0,
there is a fit whenever there is one of the data. Equal clusters weigh together as one draw of
gamma(count, 1), so distinct battles are drawn instead of all battles.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles
from projections.intervals import ROUNDING, Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import Scores

Bootstrap: TypeAlias = Literal["bayesian", "multinomial"]

_BATCH: Final = 40_000  # numbers in a batch of square matrices: they stay in the processor's cache
_DRAWN: Final = 2_000_000  # numbers drawn at a time
_CLOSE: Final = 1e-4  # of a strength: the square of it, what is missing, is nothing beside noise
NO_SPREAD: Final = 1e-3  # Elo points: a smaller spread is that of rounding, and none was seen
FEWEST_UNITS: Final = 2  # units that can differ from each other


class Uncertainty(NamedTuple):
    """The uncertainty of ratings.

    lower, upper: (n,) the interval; covariance: (n, n); n_without_fit: of resamples.
    """

    lower: Floats
    upper: Floats
    covariance: Floats
    n_without_fit: int

    def without_certainty(self, entrants: Sequence[str], anchor: str | None) -> "Uncertainty":
        """Replace bounds and covariance by NaN where no two clusters differ.

        Clusters that all agree say nothing of how others would vary. The anchor alone is fixed by
        decree.

        Args:
            entrants: (n,) names.
            anchor: The anchor, if any.
        """
        is_free = np.array([entrant != anchor for entrant in entrants], dtype=np.bool_)
        alike = (self.upper - self.lower < NO_SPREAD) & is_free
        return Uncertainty(
            np.where(alike, np.nan, self.lower),
            np.where(alike, np.nan, self.upper),
            np.where(alike[:, None] | alike, np.nan, self.covariance),
            self.n_without_fit,
        )


class Bounds(NamedTuple):
    """Both ends of an interval, (n,) each."""

    lower: Floats
    upper: Floats


def bootstrap_strengths(
    likelihood: Likelihood,
    parameters: Floats,
    kind: Bootstrap,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the strengths of each resample, (resamples, n_entrants); NaN where it has no fit.

    A prior is drawn, too: in each resample it has another centre. So the spread includes the
    prior's part, as the sandwich does.

    Args:
        likelihood: What was fitted.
        parameters: (k,) the fit, three or four steps away from that of each resample.
        kind: The kind of bootstrap.
        resamples: Their number.
        rng: The generator.
    """
    n, n_units = likelihood.model.n_entrants, len(likelihood.units.count)
    size = max(1, min(_BATCH // n**2, _DRAWN // n_units))
    batches = [min(size, resamples - start) for start in range(0, resamples, size)]
    return np.concatenate([_batch(likelihood, parameters, kind, each, rng) for each in batches])


def percentiles(draws: Floats, level: float) -> Bounds:
    """Return the bounds that leave out the same number of draws at either end.

    A NaN counts as beyond both bounds, so a bound is infinite if there are too many.

    Args:
        draws: (resamples, n).
        level: The share of draws between the bounds.
    """
    n_below = int(len(draws) * (1 - level) / 2 + ROUNDING)
    lower = np.sort(np.where(np.isnan(draws), -np.inf, draws), axis=0)[n_below]
    upper = np.sort(np.where(np.isnan(draws), np.inf, draws), axis=0)[-1 - n_below]
    return Bounds(lower, upper)


def _batch(
    likelihood: Likelihood,
    parameters: Floats,
    kind: Bootstrap,
    size: int,
    rng: np.random.Generator,
) -> Floats:
    n = likelihood.model.n_entrants
    counts = likelihood.counts(_evidence(likelihood.units.count, kind, size, rng))
    sd = likelihood.precision**-0.5 if likelihood.precision else 0.0
    centre = rng.normal(scale=sd, size=(size, n))
    strengths = np.full((size, n), np.nan)
    fitted = likelihood.has_fit(counts)
    start = np.tile(parameters, (fitted.sum(), 1))
    found = likelihood.maximise(start, counts[fitted], tolerance=_CLOSE, centre=centre[fitted])
    strengths[fitted] = np.where(found.converged[:, None], found.parameters[:, :n], np.nan)
    return strengths


def _evidence(
    count: NDArray[np.int64], kind: Bootstrap, size: int, rng: np.random.Generator
) -> Floats:
    """Draw the weight of each cluster, (size, n_clusters)."""
    if kind == "bayesian":
        return rng.standard_gamma(count, (size, len(count)))
    n_units = count.sum()
    return rng.multinomial(n_units, count / n_units, size).astype(np.float64)


def single_battles(battles: Battles, chosen: NDArray[np.bool_]) -> ClusteredBattles:
    """Return some battles one by one, clustered by prompt.

    Clusters are numbered in the order of the prompts' numbers.
    """
    prompts, unit = np.unique(battles.cluster[chosen], return_inverse=True)
    return ClusteredBattles(
        len(battles.entrants),
        a=battles.a[chosen],
        b=battles.b[chosen],
        score=battles.score[chosen],
        weight=battles.weight[chosen],
        unit=unit,
        count=np.ones_like(prompts, dtype=np.int64),
    )


def sensitivity_of(figures: Floats, information: Floats) -> Floats:
    """Return the derivative of figures by each derivative of the log-likelihood, (m, k).

    Args:
        figures: (m, k) each a linear function of parameters.
        information: (k, k) at the fit.
    """
    return np.asarray(np.linalg.solve(information, figures.T).T, dtype=np.float64)


def influences(response: Floats, scores: Scores, units: ClusteredBattles) -> Floats:
    """Return each cluster's influence on each of m figures, (n_clusters, m).

    Args:
        response: (m, k) the sensitivity of the figures.
        scores: The derivatives of each battle's log-likelihood.
        units: The battles.
    """
    n, n_units = units.n_entrants, len(units.count)
    moved = np.empty((n_units, len(response)))
    for figure, row in enumerate(response):
        of_battles = scores.strength * (row[units.a] - row[units.b]) + scores.others @ row[n:]
        moved[:, figure] = np.bincount(units.unit, of_battles, minlength=n_units)
    return moved


def covariance_of(moved: Floats) -> Floats:
    """Return the covariance of m figures, (m, m): C / (C - 1) times the sum over C clusters.

    Args:
        moved: (C, m) each cluster's influence on each figure.

    Returns:
        NaN throughout for a single cluster, which says nothing of how clusters vary.
    """
    n_units, m = moved.shape
    if n_units == 1:
        return np.full((m, m), np.nan)
    return np.asarray(moved.T @ moved * (n_units / (n_units - 1)))


_BLOCK: Final = 2_000_000  # numbers in a table of units by parameters, at a time


class _Entries(NamedTuple):
    """The nonzero derivatives of each battle's log-likelihood, in a few columns.

    unit: (n,) the battle's cluster; parameter: (n, few); derivative: (n, few).
    """

    unit: NDArray[np.intp]
    parameter: NDArray[np.intp]
    derivative: Floats

    def of(self, battles: NDArray[np.bool_ | np.intp]) -> "_Entries":
        return _Entries(self.unit[battles], self.parameter[battles], self.derivative[battles])


def covariance(likelihood: Likelihood, parameters: Floats) -> Floats:
    """Return the sandwich covariance of strengths at a fit, (n_entrants, n_entrants).

    H^-1 (C / (C - 1) sum of g g' + P) H^-1, where H is the information including the prior's, P the
    prior's alone, and g the derivatives of the log-likelihood of one of C clusters. C / (C - 1)
    corrects for a fit that is closest to its own data, which matters for few clusters. The prior
    counts as evidence of known variance: without it, an entrant that never lost would seem sure of
    a rating that is all prior. Without a prior only differences are determined, as in a fit.

    Args:
        likelihood: What was fitted, to at least two clusters.
        parameters: (k,) the fit.
    """
    n, n_units = likelihood.model.n_entrants, likelihood.units.count.sum()
    information = likelihood.information(parameters)
    meat = _outer_products(likelihood, parameters) * n_units / (n_units - 1)
    meat[np.arange(n), np.arange(n)] += likelihood.precision
    half = np.linalg.solve(information, meat)
    return np.asarray(np.linalg.solve(information, half.T)[:n, :n], dtype=np.float64)


def _outer_products(likelihood: Likelihood, parameters: Floats) -> Floats:
    """Return the sum over clusters of g g', (k, k)."""
    model, units = likelihood.model, likelihood.units
    scores = model.scores(parameters, units)
    others = np.arange(model.n_entrants, model.n_parameters)
    entries = _Entries(
        units.unit,
        np.column_stack((units.a, units.b, np.tile(others, (len(units.a), 1)))),
        np.column_stack((scores.strength, -scores.strength, scores.others)),
    )
    alone = np.bincount(units.unit)[units.unit] == 1
    apart = _of_single_battles(entries.of(alone), units.count, model.n_parameters)
    return apart + _of_several_battles(entries.of(~alone), model.n_parameters)


def _of_single_battles(entries: _Entries, count: NDArray[np.int64], k: int) -> Floats:
    """Add up clusters of one battle, in which few products are not 0."""
    unit, parameter, derivative = entries
    place = parameter[:, :, None] * k + parameter[:, None, :]
    product = derivative[:, :, None] * derivative[:, None, :] * count[unit][:, None, None]
    sums = np.bincount(place.ravel(), product.ravel(), minlength=k * k)
    return np.reshape(sums.astype(np.float64, copy=False), (k, k))


def _of_several_battles(entries: _Entries, k: int) -> Floats:
    """Add up clusters of several battles, in tables of clusters by parameters."""
    unit, parameter, derivative = entries.of(np.argsort(entries.unit, kind="stable"))
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    number = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(unit)))
    products = np.zeros((k, k))
    for first in range(0, len(starts), max(1, _BLOCK // k)):
        n_units = min(len(starts) - first, max(1, _BLOCK // k))
        rows = slice(*np.searchsorted(number, (first, first + n_units)))
        place = (number[rows, None] - first) * k + parameter[rows]
        flat = np.bincount(place.ravel(), derivative[rows].ravel(), minlength=n_units * k)
        table = flat.reshape(n_units, k)  # their g
        products += table.T @ table
    return products


def normal_interval(rating: Floats, spread: Floats, level: float) -> Uncertainty:
    """Return the normal interval, z standard errors each way, from a covariance, (n, n)."""
    error = np.sqrt(np.maximum(spread.diagonal(), 0.0))  # 0 may come out a little below
    margin = NormalDist().inv_cdf((1 + level) / 2) * error
    return Uncertainty(rating - margin, rating + margin, spread, n_without_fit=0)


def percentile_interval(draws: Floats, level: float) -> Uncertainty:
    """Return the percentile interval of resamples, (draws, n); no covariance if it is unbounded."""
    n = draws.shape[1]
    lower, upper = percentiles(draws, level)
    fitted = draws[~np.isnan(draws).any(axis=1)]
    spread = np.full((n, n), np.nan)
    if len(fitted) >= FEWEST_UNITS and np.isfinite(lower).all() and np.isfinite(upper).all():
        spread = np.cov(fitted, rowvar=False).reshape(n, n)
    return Uncertainty(lower, upper, spread, n_without_fit=len(draws) - len(fitted))
