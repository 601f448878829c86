"""Rate one component: the fit, its place on the Elo scale, and the interval."""

from collections.abc import Sequence
from math import exp, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import TIE
from projections.intervals import Floats
from projections.ratings.bradley_terry._davidson import Davidson, PairModel
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry
from projections.ratings.bradley_terry.uncertainty import (
    FEWEST_UNITS,
    Uncertainty,
    bootstrap_strengths,
    covariance,
    normal_interval,
    percentile_interval,
)

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
    entrants: Sequence[str], component: NDArray[np.intp], parameters: BradleyTerryParameters
) -> Scale:
    """Fix the anchor's component at the anchor's rating, and every other at its mean.

    Args:
        entrants: (n,) names.
        component: (n,) the number of each one's component.
        parameters: The anchor, if any, and its rating.
    """
    n, together = len(entrants), component[:, None] == component
    zero, hung_from = np.full(n, MEAN_RATING), together / together.sum(axis=1, keepdims=True)
    if parameters.anchor in entrants:
        anchor = entrants.index(parameters.anchor)
        zero[together[anchor]] = parameters.anchor_rating
        hung_from[together[anchor]] = np.arange(n) == anchor
    return Scale(zero, ELO * (np.eye(n) - hung_from))


def precision_of(parameters: BradleyTerryParameters) -> float:
    """Return 1 / variance of the prior of strengths; 0 without a prior."""
    return 0.0 if parameters.prior_sd is None else (ELO / parameters.prior_sd) ** 2


class ComponentRating(NamedTuple):
    """Ratings of a component, (n,); nu is Davidson's, 0 without ties as an outcome."""

    rating: Floats
    uncertainty: Uncertainty
    nu: float


def rate_component(
    units: ClusteredBattles,
    members: NDArray[np.intp],
    entrants: Sequence[str],
    parameters: BradleyTerryParameters,
    rng: np.random.Generator,
) -> ComponentRating | None:
    """Rate the entrants of a component by their battles.

    Args:
        units: The battles of all entrants.
        members: (n,) the numbers of the component's.
        entrants: The names of all.
        parameters: The model, the anchor, and the interval.
        rng: Draws resamples, if any.

    Returns:
        None where Davidson's model has no finite fit, or one entrant is alone without a prior.

    Raises:
        CannotRate: Strengths are too far apart to be computed.
    """
    n, precision = len(members), precision_of(parameters)
    if n == 1 and not precision:
        return None
    within, names = units.within(members), [entrants[member] for member in members]
    model = _model(within, parameters)
    likelihood = Likelihood(model, within, precision)
    fit = likelihood.fit()
    if fit is None:
        return None
    scale = scale_of(names, np.zeros(n, dtype=np.intp), parameters)
    uncertainty = _uncertainty(likelihood, fit, scale, parameters, rng)
    return ComponentRating(
        scale.rating(fit[:n]),
        uncertainty.without_certainty(names, parameters.anchor),
        nu=exp(fit[n]) if model.n_parameters > n else 0.0,
    )


def _model(units: ClusteredBattles, parameters: BradleyTerryParameters) -> PairModel:
    """Choose the model; Davidson's without ties is Bradley and Terry's."""
    if parameters.ties == "davidson" and (units.score == TIE).any():
        return Davidson(units.n_entrants)
    return BradleyTerry(units.n_entrants)


def _uncertainty(
    likelihood: Likelihood,
    fit: Floats,
    scale: Scale,
    parameters: BradleyTerryParameters,
    rng: np.random.Generator,
) -> Uncertainty:
    n = likelihood.model.n_entrants
    if likelihood.units.count.sum() < FEWEST_UNITS:
        unknown = np.full(n, np.nan)
        return Uncertainty(unknown, unknown, np.full((n, n), np.nan), n_without_fit=0)
    if parameters.interval == "sandwich":
        spread = scale.points @ covariance(likelihood, fit) @ scale.points.T
        return normal_interval(scale.rating(fit[:n]), spread, parameters.level)
    draws = bootstrap_strengths(
        likelihood, fit, parameters.interval, resamples=parameters.resamples, rng=rng
    )
    return percentile_interval(scale.rating(draws), parameters.level)
