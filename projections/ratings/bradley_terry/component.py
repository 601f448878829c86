"""Rate one component: the fit, its place on the Elo scale, and the interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import TIE
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles, Support
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import BradleyTerry, Davidson, PairModel
from projections.ratings.bradley_terry.uncertainty import (
    Uncertainty,
    bootstrap_strengths,
    freedom_of_differences,
    percentile_uncertainty,
    student_uncertainty,
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
