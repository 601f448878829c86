"""Rate one component: the fit, its place on the Elo scale, and the interval.

An interval is Student's from a covariance, or the percentiles of bootstrap resamples. Multinomial:
as many clusters as there are, drawn with replacement (Efron 1979). Bayesian: each cluster weighs as
a draw of gamma(1, 1) (Rubin 1981; Newton and Raftery 1994); as none weighs 0, there is a fit
whenever there is one of the data. Equal clusters weigh together as one draw of gamma(count, 1), so
distinct battles are drawn instead of all battles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import TIE
from projections.intervals import ROUNDING, Floats, critical_value
from projections.ratings.bradley_terry.evidence import ClusteredBattles, Support
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry, Davidson, PairModel

Bootstrap: TypeAlias = Literal["bayesian", "multinomial"]

_BATCH: Final = 40_000  # numbers in a batch of square matrices: they stay in the processor's cache
_DRAWN: Final = 2_000_000  # numbers drawn at a time
_CLOSE: Final = 1e-4  # of a strength: the square of it, what is missing, is nothing beside noise
NO_SPREAD: Final = 1e-3  # Elo points: a smaller spread is that of rounding, and none was seen


class Uncertainty(NamedTuple):
    """The uncertainty of ratings.

    lower, upper: (n,) the interval; covariance: (n, n); freedom: (n, n) the degrees of freedom of
    differences, on the diagonal those of ratings; n_without_fit: of resamples.
    """

    lower: Floats
    upper: Floats
    covariance: Floats
    freedom: Floats
    n_without_fit: int = 0


def student_uncertainty(
    entrants: Sequence[str],
    rating: Floats,
    covariance: Floats,
    freedom: Floats,
    support: Support,
    parameters: BradleyTerryParameters,
) -> Uncertainty:
    """Return Student's intervals of ratings, (n,), where there is evidence enough for them.

    covariance: (n, n) of ratings; freedom: (n, n) of differences.
    """
    is_anchor = anchored(entrants, parameters.anchor)
    own = freedom_of_ratings(freedom, is_anchor)
    bounds = t_interval(rating, covariance, own, parameters.level)
    return _where_known(Uncertainty(*bounds, covariance, freedom), support, is_anchor)


def percentile_uncertainty(
    entrants: Sequence[str],
    draws: Floats,
    freedom: Floats,
    support: Support,
    parameters: BradleyTerryParameters,
) -> Uncertainty:
    """Return expanded percentile intervals of ratings, where there is evidence enough for them.

    The percentiles are those of the normal distribution at sqrt(C / (C - 1)) t: resamples of C
    clusters vary too little, and few clusters have long tails (Hesterberg 2015).

    draws: (resamples, n) ratings, NaN without a fit; freedom: (n, n) of differences, the C - 1.
    """
    n, is_anchor = draws.shape[1], anchored(entrants, parameters.anchor)
    few = np.maximum(np.nan_to_num(freedom_of_ratings(freedom, is_anchor), nan=np.inf), 1.0)
    reach = np.sqrt(1 + 1 / few) * critical_value(parameters.level, few)
    expanded = np.array([2 * NormalDist().cdf(t) - 1 for t in reach])
    bounds = percentiles(draws, expanded)
    fitted = draws[~np.isnan(draws).any(axis=1)]
    covariance = np.full((n, n), np.nan)
    if len(fitted) > 1 and np.isfinite(bounds).all():
        covariance = np.cov(fitted, rowvar=False).reshape(n, n)
    uncertainty = Uncertainty(*bounds, covariance, freedom, n_without_fit=len(draws) - len(fitted))
    return _where_known(uncertainty, support, is_anchor)


def _where_known(
    uncertainty: Uncertainty, support: Support, is_anchor: NDArray[np.bool_]
) -> Uncertainty:
    """Replace bounds and covariance by NaN on thin evidence, and where no two clusters differ.

    Clusters that all agree say nothing of how others would vary. The anchor alone is fixed by
    decree; if the evidence on it is thin, no rating that hangs from it has bounds.
    """
    alike = (uncertainty.upper - uncertainty.lower < NO_SPREAD) & ~is_anchor
    unknown = alike | ~support.is_enough
    unbound = (unknown | (is_anchor & unknown).any()) & ~is_anchor
    return uncertainty._replace(
        lower=np.where(unbound, np.nan, uncertainty.lower),
        upper=np.where(unbound, np.nan, uncertainty.upper),
        covariance=np.where(unknown[:, None] | unknown, np.nan, uncertainty.covariance),
    )


def anchored(entrants: Sequence[str], anchor: str | None) -> NDArray[np.bool_]:
    """Say which entrant is the anchor, (n,)."""
    return np.array([entrant == anchor for entrant in entrants], dtype=np.bool_)


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
    n, count = likelihood.model.n_entrants, likelihood.units.count
    sd = likelihood.precision**-0.5 if likelihood.precision else 0.0
    at_once, draws = max(1, min(_BATCH // n**2, _DRAWN // len(count))), np.empty((resamples, n))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        numbers = _evidence(count, kind, size, rng)
        centre = rng.normal(scale=sd, size=(size, n))
        parameters_drawn = likelihood.refitted(numbers, parameters, tolerance=_CLOSE, centre=centre)
        draws[start : start + size] = parameters_drawn[:, :n]
    return draws


def _evidence(
    count: NDArray[np.int64], kind: Bootstrap, size: int, rng: np.random.Generator
) -> Floats:
    """Draw the weight of each cluster, (size, n_clusters)."""
    if kind == "bayesian":
        return rng.standard_gamma(count, (size, len(count)))
    n_units = count.sum()
    return rng.multinomial(n_units, count / n_units, size).astype(np.float64)


def percentiles(draws: Floats, level: float | Floats) -> tuple[Floats, Floats]:
    """Return the bounds that leave out the same number of draws at either end.

    A NaN counts as beyond both bounds, so a bound is infinite if there are too many.

    Args:
        draws: (resamples, n).
        level: The share of draws between the bounds, of all or (n,) of each column.
    """
    n_below = (len(draws) * (1 - np.asarray(level)) / 2 + ROUNDING).astype(np.intp)
    below = np.broadcast_to(n_below, draws.shape[1:])[None, :]
    lower = np.sort(np.where(np.isnan(draws), -np.inf, draws), axis=0)
    upper = np.sort(np.where(np.isnan(draws), np.inf, draws), axis=0)
    return (
        np.take_along_axis(lower, below, axis=0)[0],
        np.take_along_axis(upper, len(draws) - 1 - below, axis=0)[0],
    )


def freedom_of_differences(variance: Floats, freedom: Floats) -> Floats:
    """Return the degrees of freedom of each difference, (n, n); on the diagonal those given.

    The harmonic mean of both entrants', weighted by the variances of their ratings: most depends on
    who is less sure.

    Args:
        variance: (n,) of ratings.
        freedom: (n,) of ratings.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        lost = variance / freedom
        return np.asarray((variance[:, None] + variance) / (lost[:, None] + lost))


def freedom_of_ratings(freedom: Floats, is_anchor: NDArray[np.bool_]) -> Floats:
    """Return the degrees of freedom of ratings, (n,): those of the difference from the anchor."""
    own = freedom.diagonal()
    if not is_anchor.any():
        return own
    from_anchor = freedom[:, is_anchor.argmax()]
    return np.where(np.isnan(from_anchor), own, from_anchor)


def t_interval(
    rating: Floats, spread: Floats, freedom: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return Student's interval of ratings, (n,), from a covariance, (n, n).

    freedom: (n,), without meaning where the variance is 0.
    """
    error = np.sqrt(np.maximum(spread.diagonal(), 0.0))  # 0 may come out a little below
    margin = np.where(error > 0, critical_value(level, freedom), 0.0) * error
    return rating - margin, rating + margin


MEAN_RATING: Final = 1000.0
ELO: Final = 400.0 / log(10.0)  # points per unit of strength: 400 points are odds of 10 : 1


class Scale(NamedTuple):
    """Elo points as a linear function of strengths.

    zero: (n,) the rating at the component's zero, its mean or the anchor; NaN where there is no
    rating. points: (n, n) whose rows take differences of strengths within a component.
    """

    zero: Floats
    points: Floats

    def rating(self, strengths: Floats) -> Floats:
        """Convert strengths to ratings, (n,) or (resamples, n)."""
        return self.zero + strengths @ self.points.T


def scale_of(
    entrants: Sequence[str],
    component: NDArray[np.intp],
    support: Support,
    parameters: BradleyTerryParameters,
) -> Scale:
    """Fix the anchor's component at the anchor's rating, and every other at its mean.

    Args:
        entrants: (n,) names.
        component: (n,) the number of each one's component.
        support: What their ratings rest on.
        parameters: The anchor, if any, and its rating.
    """
    n, together = len(entrants), component[:, None] == component
    zero, hung_from = np.full(n, MEAN_RATING), together * support.shares(component)
    if parameters.anchor in entrants:
        anchor = entrants.index(parameters.anchor)
        zero[together[anchor]] = parameters.anchor_rating
        hung_from[together[anchor]] = np.arange(n) == anchor
    return Scale(zero, ELO * (np.eye(n) - hung_from))


def precision_of(parameters: BradleyTerryParameters) -> float:
    """Return 1 / variance of the prior of strengths; 0 without a prior."""
    return 0.0 if parameters.prior_sd is None else (ELO / parameters.prior_sd) ** 2


@dataclass(frozen=True)
class FittedComponent:
    """The fit of a component of n entrants.

    likelihood: of its battles; fit: (k,) the parameters of highest likelihood; entrants: (n,)
    names; support: what their ratings rest on.
    """

    likelihood: Likelihood
    fit: Floats
    entrants: Sequence[str]
    support: Support
    parameters: BradleyTerryParameters

    @property
    def rating(self) -> Floats:
        """Elo points, (n,)."""
        return self._scale(self.parameters).rating(self.fit[: len(self.entrants)])

    @property
    def nu(self) -> float:
        """Davidson's parameter; 0 without ties as an outcome."""
        n = len(self.entrants)
        return exp(self.fit[n]) if len(self.fit) > n else 0.0

    def uncertainty(self, rng: np.random.Generator) -> Uncertainty:
        """Return intervals and covariance; rng draws resamples, if any."""
        parameters, scale = self.parameters, self._scale(self.parameters)
        figures = np.zeros((len(self.entrants), len(self.fit)))
        figures[:, : len(figures)] = self._scale(replace(parameters, anchor=None)).points
        covariance, own = self.likelihood.sandwich(self.fit).spread_of(figures)
        freedom = freedom_of_differences(covariance.diagonal(), own)
        if parameters.interval == "sandwich":
            covariance = scale.points @ covariance @ scale.points.T / ELO**2
            return student_uncertainty(
                self.entrants, self.rating, covariance, freedom, self.support, parameters
            )
        kind, resamples = parameters.interval, parameters.resamples
        draws = bootstrap_strengths(self.likelihood, self.fit, kind, resamples=resamples, rng=rng)
        return percentile_uncertainty(
            self.entrants, scale.rating(draws), freedom, self.support, parameters
        )

    def _scale(self, parameters: BradleyTerryParameters) -> Scale:
        alone = np.zeros(len(self.entrants), dtype=np.intp)
        return scale_of(self.entrants, alone, self.support, parameters)


def fit_component(
    units: ClusteredBattles,
    members: NDArray[np.intp],
    entrants: Sequence[str],
    support: Support,
    parameters: BradleyTerryParameters,
) -> FittedComponent | None:
    """Fit the strengths of the entrants of a component to their battles.

    Args:
        units: The battles of all entrants.
        members: (n,) the numbers of the component's.
        entrants: The names of all.
        support: What the ratings of all rest on.
        parameters: The model, the anchor, and the interval.

    Returns:
        None where Davidson's model has no finite fit, or one entrant is alone without a prior.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    precision = precision_of(parameters)
    if len(members) == 1 and not precision:
        return None
    within = units.within(members)
    likelihood = Likelihood(_model(within, parameters), within, precision)
    fit = likelihood.fit()
    if fit is None:
        return None
    names = [entrants[member] for member in members]
    own = Support(support.n_clusters[members], support.weight[members])
    return FittedComponent(likelihood, fit, names, own, parameters)


def _model(units: ClusteredBattles, parameters: BradleyTerryParameters) -> PairModel:
    """Choose the model; Davidson's without ties is Bradley and Terry's."""
    if parameters.ties == "davidson" and (units.score == TIE).any():
        return Davidson(units.n_entrants)
    return BradleyTerry(units.n_entrants)
