"""What is maximised: a model's log-likelihood of battles, with the prior if one is stated."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.errors import CannotRate
from projections.newton import Climb, climb
from projections.pair_model import Derivatives, PairModel, Slopes, Tally
from projections.resamples import Floats
from projections.units import Units

_EXACT: Final = 1e-6  # of a strength: what is missing after the last step is its square
_TOO_FAR: Final = (
    "strengths come out too far apart to be computed",
    "state a prior, or leave out battles of extreme weight",
)


@dataclass(frozen=True)
class Likelihood:
    """Battles under a model; without a prior, those of a component.

    Attributes:
        model: Of who wins.
        units: The battles.
        precision: 1 / variance of the normal prior of each strength about their mean; 0: no prior.
    """

    model: PairModel
    units: Units
    precision: float = 0.0

    @cached_property
    def _tally(self) -> Tally:
        return self.model.tally(self.units)

    def counts(self, numbers: Floats) -> Floats:
        """Return the model's counts, (batch, *shape), given how often each unit is there.

        Args:
            numbers: (batch, n_units), not necessarily whole.
        """
        unit, place, amount = self._tally
        counts = np.empty((len(numbers), prod(self.model.shape)))
        for row, number in zip(counts, numbers, strict=True):
            row[:] = np.bincount(place, amount * number[unit], minlength=len(row))
        return counts.reshape(len(numbers), *self.model.shape)

    def has_fit(self, counts: Floats) -> NDArray[np.bool_]:
        """Say for which counts, (batch, *shape), strengths of most likelihood are finite."""
        return self.model.has_fit(counts, prior=self.precision > 0)

    def fit(self) -> Floats | None:
        """Return the parameters of most likelihood, (k,).

        Without a prior only differences of strengths are determined, and the first is 0.

        Returns:
            None where strengths of most likelihood are not finite.

        Raises:
            CannotRate: Strengths lie further apart than can be computed.
        """
        counts = self._counted()
        if not self.has_fit(counts).all():
            return None
        start = np.zeros((1, self.model.n_parameters))
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # then it does not come to rest
                fitted = self.climb(start, counts, tolerance=_EXACT)
        except np.linalg.LinAlgError as error:
            raise CannotRate(*_TOO_FAR) from error
        if not fitted.settled.all():
            raise CannotRate(*_TOO_FAR)
        return np.asarray(fitted.parameters[0])

    def information(self, parameters: Floats) -> Floats:
        """Return the second derivatives at parameters, (k,), with their sign changed, (k, k)."""
        slopes = self._derivatives(self._counted(), centre=0.0)(parameters[None, :])
        return np.asarray(slopes.information[0])

    def climb(
        self,
        start: Floats,
        counts: Floats,
        *,
        tolerance: float,
        centre: Floats | float = 0.0,
    ) -> Climb:
        """Maximise for each of several counts.

        Args:
            start: (batch, k) parameters.
            counts: (batch, *shape).
            tolerance: As of a climb.
            centre: (batch, n_entrants) of the prior.
        """
        return climb(
            self._derivatives(counts, centre),
            start,
            n_strengths=self.model.n_entrants,
            tolerance=tolerance,
        )

    def _counted(self) -> Floats:
        return self.counts(self.units.count[None, :].astype(np.float64))

    def _derivatives(self, counts: Floats, centre: Floats | float) -> Derivatives:
        """Differentiate with the prior; or hold the first strength, so that there is an inverse.

        The step that a held strength allows is 0, and adding to its information does that: the
        gradient has no part along the shift of all strengths, of which information knows nothing.
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
