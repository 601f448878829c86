"""What a model of paired comparisons says of battles, to those who fit it and judge the fit."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.resamples import Floats
from projections.units import Units


class Tally(NamedTuple):
    """What battles add to the counts that a model is fitted to.

    unit: (m,) on whose evidence; place: (m,) in the counts, laid flat; amount: (m,).
    """

    unit: NDArray[np.intp]
    place: NDArray[np.intp]
    amount: Floats


class Slopes(NamedTuple):
    """First and second derivatives of log-likelihoods by k parameters.

    gradient: (batch, k); information: (batch, k, k), the second derivatives with their sign
    changed.
    """

    gradient: Floats
    information: Floats


Derivatives: TypeAlias = Callable[[Floats], Slopes]  # of parameters, (batch, k)


class Scores(NamedTuple):
    """Derivatives of each battle's log-likelihood.

    strength: (n,) by the strength of a, that by b's being the opposite; others: (n, k -
    n_entrants) by the other parameters.
    """

    strength: Floats
    others: Floats


class PairModel(Protocol):
    """A log-linear model of who wins: k parameters, of which the first are strengths.

    Strengths are logarithms of odds, and only their differences matter.
    """

    @property
    def n_entrants(self) -> int:
        """Return how many strengths there are."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """How counts are laid out: (kinds of outcome, n_entrants, n_entrants)."""

    @property
    def n_parameters(self) -> int:
        """Return k."""

    def tally(self, units: Units) -> Tally:
        """Say what battles add to the counts."""

    def has_fit(self, counts: Floats, *, prior: bool) -> NDArray[np.bool_]:
        """Say for which counts strengths of most likelihood are finite, (batch,)."""

    def derivatives(self, counts: Floats) -> Derivatives:
        """Return what differentiates the log-likelihoods of counts, (batch, *shape)."""

    def scores(self, parameters: Floats, units: Units) -> Scores:
        """Return each battle's derivatives at parameters, (k,)."""
