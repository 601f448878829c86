"""Ratings of entrants that can be compared: the fit, its place on the Elo scale, the interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.bradley_terry import BradleyTerry
from projections.bt_bootstrap import percentiles, resampled
from projections.davidson import Davidson
from projections.likelihood import Likelihood
from projections.pair_model import TIE, Floats, PairModel
from projections.sandwich import covariance
from projections.units import Units

MEAN_RATING: Final = 1000.0
ELO: Final = 400.0 / log(10.0)  # points per unit of strength: 400 points are odds of 10 : 1
ROUNDING: Final = 1e-3  # Elo points: a smaller spread is that of rounding, and none was seen
_FEWEST: Final = 2  # units that can differ from each other


class Uncertainty(NamedTuple):
    """How sure ratings are.

    lower, upper: (n,) the interval; covariance: (n, n); n_without_fit: of resamples.
    """

    lower: Floats
    upper: Floats
    covariance: Floats
    n_without_fit: int

    def without_certainty(self, entrants: Sequence[str], anchor: str | None) -> "Uncertainty":
        """Take away what is certain only as no two units differ: bounds and covariance are NaN.

        Units that all say the same tell nothing of how far others would be from them. The anchor
        alone is where it is by decree.

        Args:
            entrants: (n,) names.
            anchor: What ratings hang from, if from anything.
        """
        is_free = np.array([entrant != anchor for entrant in entrants], dtype=np.bool_)
        alike = (self.upper - self.lower < ROUNDING) & is_free
        return Uncertainty(
            np.where(alike, np.nan, self.lower),
            np.where(alike, np.nan, self.upper),
            np.where(alike[:, None] | alike, np.nan, self.covariance),
            self.n_without_fit,
        )


class ComponentRating(NamedTuple):
    """Ratings of a component, (n,); nu is Davidson's, 0 where no tie is an outcome."""

    rating: Floats
    uncertainty: Uncertainty
    nu: float


@dataclass(frozen=True)
class _Scale:
    """Elo points as a linear function of strengths, (n,) or (resamples, n)."""

    zero: float
    matrix: Floats  # (n, n)

    def points(self, strengths: Floats) -> Floats:
        return self.zero + strengths @ self.matrix.T


def rate_component(
    units: Units,
    entrants: Sequence[str],
    parameters: BradleyTerryParameters,
    rng: np.random.Generator,
) -> ComponentRating | None:
    """Rate the entrants of a component by their battles.

    Args:
        units: The battles.
        entrants: (n,) names.
        parameters: The model, what its scale hangs from, and the interval.
        rng: What draws resamples, if any.

    Returns:
        None where Davidson's model has no finite fit.

    Raises:
        CannotRate: Strengths lie too far apart to be computed.
    """
    n, model = len(entrants), _model(units, parameters)
    precision = (ELO / parameters.prior_sd) ** 2 if parameters.prior_sd else 0.0
    likelihood = Likelihood(model, units, precision)
    fit, scale = likelihood.fit(), _scale(entrants, parameters)
    if fit is None:
        return None
    uncertainty = _uncertainty(likelihood, fit, scale, parameters, rng)
    return ComponentRating(
        scale.points(fit[:n]),
        uncertainty.without_certainty(entrants, parameters.anchor),
        nu=exp(fit[n]) if model.n_parameters > n else 0.0,
    )


def _model(units: Units, parameters: BradleyTerryParameters) -> PairModel:
    """Choose the model; Davidson's without ties is Bradley and Terry's."""
    if parameters.ties == "davidson" and (units.score == TIE).any():
        return Davidson(units.n_entrants)
    return BradleyTerry(units.n_entrants)


def _scale(entrants: Sequence[str], parameters: BradleyTerryParameters) -> _Scale:
    """Hang ratings from the anchor if it is among them, otherwise from their mean."""
    n = len(entrants)
    if parameters.anchor in entrants:
        zero, share = parameters.anchor_rating, np.eye(n)[entrants.index(parameters.anchor)]
    else:
        zero, share = MEAN_RATING, np.full(n, 1 / n)
    return _Scale(zero, ELO * (np.eye(n) - share))


def _uncertainty(
    likelihood: Likelihood,
    fit: Floats,
    scale: _Scale,
    parameters: BradleyTerryParameters,
    rng: np.random.Generator,
) -> Uncertainty:
    n = likelihood.model.n_entrants
    if likelihood.units.count.sum() < _FEWEST:
        unknown = np.full(n, np.nan)
        return Uncertainty(unknown, unknown, np.full((n, n), np.nan), n_without_fit=0)
    if parameters.interval == "sandwich":
        spread = scale.matrix @ covariance(likelihood, fit) @ scale.matrix.T
        return normal(scale.points(fit[:n]), spread, parameters.level)
    draws = resampled(likelihood, fit, parameters.interval, resamples=parameters.resamples, rng=rng)
    return _drawn(scale.points(draws), parameters.level)


def normal(rating: Floats, spread: Floats, level: float) -> Uncertainty:
    """Take the interval from the covariance of ratings, (n, n): z standard errors each way."""
    error = np.sqrt(np.maximum(spread.diagonal(), 0.0))  # 0 may come out a little below
    margin = NormalDist().inv_cdf((1 + level) / 2) * error
    return Uncertainty(rating - margin, rating + margin, spread, n_without_fit=0)


def _drawn(draws: Floats, level: float) -> Uncertainty:
    """Take the interval from resamples; there is no covariance where it is unbounded."""
    n = draws.shape[1]
    lower, upper = percentiles(draws, level)
    fitted = draws[~np.isnan(draws).any(axis=1)]
    spread = np.full((n, n), np.nan)
    if len(fitted) >= _FEWEST and np.isfinite(lower).all() and np.isfinite(upper).all():
        spread = np.cov(fitted, rowvar=False).reshape(n, n)
    return Uncertainty(lower, upper, spread, n_without_fit=len(draws) - len(fitted))
