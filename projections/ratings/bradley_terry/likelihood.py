"""Maximise a model's log-likelihood of battles, with the prior if there is one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import CannotRate
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.models import TOO_FAR, Derivatives, PairModel, Slopes, Tally
from projections.ratings.bradley_terry.sandwich import Sandwich, sandwich

EXACT: Final = 1e-6  # of a strength: what is missing after the last step is its square
_MOST_STEPS: Final = 200  # no strength goes further than as many units
_FARTHEST: Final = 350.0  # from 0: the odds of two such strengths can still be multiplied


def maximise(
    derivatives: Derivatives,
    start: Floats,
    span: Callable[[Floats], Floats],
    *,
    tolerance: float = EXACT,
) -> Floats:
    """Maximise the log-likelihoods of log-linear models by Newton's method, from (batch, k).

    No step changes log odds by more than its span; it is shortened to a span of 1. The third
    derivative along a step is at most span times the second, so every such step goes up (Bach
    2010). A step of less span than the tolerance is the last; what remains is about its square.

    Args:
        derivatives: Of the log-likelihoods.
        start: The first parameters.
        span: Returns the most by which steps, (batch, k), change log odds, (batch,).
        tolerance: Of the last step.

    Returns:
        The parameters, (batch, k); NaN where there is no maximum, or it is too far to compute odds:
        where the information is lost in rounding, a step may shift all strengths by any amount,
        and its span does not show it.
    """
    parameters = start
    for _ in range(_MOST_STEPS):
        gradient, information = derivatives(parameters)
        step = np.asarray(np.linalg.solve(information, gradient[:, :, None]), float)[:, :, 0]
        most = span(step)
        parameters = parameters + step / np.maximum(most, 1.0)[:, None]
        converged = (most < tolerance) & (np.abs(parameters).max(axis=1) <= _FARTHEST)
        if converged.all():
            break
    return np.where(converged[:, None], parameters, np.nan)


@dataclass(frozen=True)
class Likelihood:
    """The log-likelihood of battles under a model; without a prior, of one component.

    precision: 1 / variance of the normal prior of each strength about their mean; 0: no prior.
    """

    model: PairModel
    units: ClusteredBattles
    precision: float = 0.0

    def counts(self, numbers: Floats) -> Floats:
        """Return the model's counts, (batch, *shape), of (batch, n_clusters) occurrences."""
        unit, place, amount = self._tally
        counts = np.empty((len(numbers), prod(self.model.shape)))
        for row, number in zip(counts, numbers, strict=True):
            row[:] = np.bincount(place, amount * number[unit], minlength=len(row))
        return counts.reshape(len(numbers), *self.model.shape)

    def fit(self) -> Floats | None:
        """Return the parameters of highest likelihood, (k,), or None where they are not finite.

        Without a prior only differences of strengths are determined, and the first is 0.
        """
        counts = self._counted()
        if not self._has_fit(counts).all():
            return None
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # then it diverges
                [fitted] = self._maximised(np.zeros((1, self.model.n_parameters)), counts)
        except np.linalg.LinAlgError as error:
            raise CannotRate(*TOO_FAR) from error
        if np.isnan(fitted).any():
            raise CannotRate(*TOO_FAR)
        return np.asarray(fitted)

    def information(self, parameters: Floats) -> Floats:
        """Return the negative second derivatives at parameters, (k,), as (k, k)."""
        _, information = self._derivatives(self._counted(), centre=0.0)(parameters[None, :])
        return np.asarray(information[0])

    def sandwich(self, parameters: Floats) -> Sandwich:
        """Return the fit at parameters, (k,), as the covariance of figures needs it."""
        penalty = np.zeros(len(parameters))
        penalty[: self.model.n_entrants] = self.precision
        scores = self.model.scores(parameters, self.units)
        return sandwich(self.units, scores, self.information(parameters), penalty)

    def refitted(
        self,
        numbers: Floats,
        start: Floats,
        *,
        tolerance: float,
        centre: Floats | float = 0.0,
    ) -> Floats:
        """Return the parameters where clusters occur so often, (batch, k); NaN without a fit.

        numbers: (batch, n_clusters) occurrences; start: (k,); centre: (n_entrants,) of the prior,
        or (batch, n_entrants).
        """
        counts, parameters = self.counts(numbers), np.full((len(numbers), len(start)), np.nan)
        fitted = self._has_fit(counts)
        centres = np.full((len(numbers), self.model.n_entrants), centre, np.float64)[fitted]
        begin = np.tile(start, (int(fitted.sum()), 1))
        parameters[fitted] = self._maximised(begin, counts[fitted], tolerance, centres)
        return parameters

    @cached_property
    def _tally(self) -> Tally:
        return self.model.tally(self.units)

    def _counted(self) -> Floats:
        return self.counts(self.units.count[None, :].astype(np.float64))

    def _has_fit(self, counts: Floats) -> NDArray[np.bool_]:
        return self.model.has_fit(counts, prior=self.precision > 0)

    def _maximised(
        self,
        start: Floats,
        counts: Floats,
        tolerance: float = EXACT,
        centre: Floats | float = 0.0,
    ) -> Floats:
        n = self.model.n_entrants

        def span(step: Floats) -> Floats:
            return np.asarray(np.ptp(step[:, :n], axis=1) + np.abs(step[:, n:]).sum(axis=1))

        return maximise(self._derivatives(counts, centre), start, span, tolerance=tolerance)

    def _derivatives(self, counts: Floats, centre: Floats | float) -> Derivatives:
        """Differentiate with the prior; without one, hold the first strength at its value.

        Adding to the information of a held strength makes the matrix invertible, and its step 0:
        the gradient has no component along the shift of all strengths, about which there is no
        information.
        """
        n, precision = self.model.n_entrants, self.precision
        diagonal = np.arange(n)
        derivatives = self.model.derivatives(counts)

        def slopes(parameters: Floats) -> Slopes:
            gradient, information = derivatives(parameters)
            if precision:
                gradient[:, :n] -= precision * (parameters[:, :n] - centre)
                information[:, diagonal, diagonal] += precision
            else:
                information[:, 0, 0] *= 2
            return gradient, information

        return slopes
