"""Maximise a model's log-likelihood of battles, with the prior if there is one."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import CannotRate
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.models import TOO_FAR, Derivatives, PairModel, Slopes, Tally

_MOST_STEPS: Final = 200  # no strength goes further than as many units
_FARTHEST: Final = 350.0  # from 0: the odds of two such strengths can still be multiplied


class Maximum(NamedTuple):
    """The result: parameters, (batch, k), and which of the batch converged, (batch,)."""

    parameters: Floats
    converged: NDArray[np.bool_]


def maximise(
    derivatives: Derivatives, start: Floats, *, n_strengths: int, tolerance: float
) -> Maximum:
    """Maximise the log-likelihoods of log-linear models by Newton's method, from (batch, k).

    A step changes no log odds by more than its span, the range of its strengths (the first
    n_strengths) and what it adds to the other parameters; it is shortened to a span of 1. The third
    derivative along a step is at most span times the second, so every such step goes up (Bach
    2010). A step of less span than the tolerance is the last; what remains is about its square.
    Strengths whose odds cannot be computed have not converged: where the information is lost in
    rounding, a step may shift all of them by any amount, and its span does not show it.
    """
    parameters = start
    for _ in range(_MOST_STEPS):
        gradient, information = derivatives(parameters)
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        span = np.ptp(step[:, :n_strengths], axis=1) + np.abs(step[:, n_strengths:]).sum(axis=1)
        parameters = parameters + step / np.maximum(span, 1.0)[:, None]
        is_near = np.abs(parameters[:, :n_strengths]).max(axis=1) <= _FARTHEST
        converged = (span < tolerance) & is_near
        if converged.all():
            break
    return Maximum(parameters, converged)


_EXACT: Final = 1e-6  # of a strength: what is missing after the last step is its square


@dataclass(frozen=True)
class Likelihood:
    """The log-likelihood of battles under a model; without a prior, of one component.

    precision: 1 / variance of the normal prior of each strength about their mean; 0: no prior.
    """

    model: PairModel
    units: ClusteredBattles
    precision: float = 0.0

    @cached_property
    def _tally(self) -> Tally:
        return self.model.tally(self.units)

    def counts(self, numbers: Floats) -> Floats:
        """Return the model's counts, (batch, *shape), of (batch, n_clusters) occurrences."""
        unit, place, amount = self._tally
        counts = np.empty((len(numbers), prod(self.model.shape)))
        for row, number in zip(counts, numbers, strict=True):
            row[:] = np.bincount(place, amount * number[unit], minlength=len(row))
        return counts.reshape(len(numbers), *self.model.shape)

    def has_fit(self, counts: Floats) -> NDArray[np.bool_]:
        """Say for which counts, (batch, *shape), the strengths of highest likelihood are finite."""
        return self.model.has_fit(counts, prior=self.precision > 0)

    def fit(self) -> Floats | None:
        """Return the parameters of highest likelihood, (k,), or None where they are not finite.

        Without a prior only differences of strengths are determined, and the first is 0.
        """
        counts = self._counted()
        if not self.has_fit(counts).all():
            return None
        start = np.zeros((1, self.model.n_parameters))
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # then it diverges
                fitted = self.maximise(start, counts, tolerance=_EXACT)
        except np.linalg.LinAlgError as error:
            raise CannotRate(*TOO_FAR) from error
        if not fitted.converged.all():
            raise CannotRate(*TOO_FAR)
        return np.asarray(fitted.parameters[0])

    def information(self, parameters: Floats) -> Floats:
        """Return the negative second derivatives at parameters, (k,), as (k, k)."""
        slopes = self._derivatives(self._counted(), centre=0.0)(parameters[None, :])
        return np.asarray(slopes.information[0])

    def maximise(
        self,
        start: Floats,
        counts: Floats,
        *,
        tolerance: float,
        centre: Floats | float = 0.0,
    ) -> Maximum:
        """Maximise for each of several counts, (batch, *shape), from (batch, k) parameters.

        centre: (batch, n_entrants) of the prior.
        """
        return maximise(
            self._derivatives(counts, centre),
            start,
            n_strengths=self.model.n_entrants,
            tolerance=tolerance,
        )

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
        counts, found = self.counts(numbers), np.full((len(numbers), len(start)), np.nan)
        fitted = self.has_fit(counts)
        centres = np.full((len(numbers), self.model.n_entrants), centre, np.float64)[fitted]
        begin = np.tile(start, (int(fitted.sum()), 1))
        maximum = self.maximise(begin, counts[fitted], tolerance=tolerance, centre=centres)
        found[fitted] = np.where(maximum.converged[:, None], maximum.parameters, np.nan)
        return found

    def _counted(self) -> Floats:
        return self.counts(self.units.count[None, :].astype(np.float64))

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
            return Slopes(gradient, information)

        return slopes
