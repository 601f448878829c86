"""Bias-reduced sandwich covariance of a fit, and the degrees of freedom of what it estimates.

A fit is closest to its own data, so the scores g of a cluster are smaller than those of a new one,
most for a cluster that alone decides a figure. With J the cluster's information and M the inverse
of the whole, g is replaced by (I - J M)^(-1/2) g, whose expected square is that of a new cluster if
the model holds (CR2: Bell and McCaffrey 2002; Pustejovsky and Tipton 2018). Where all of C clusters
inform alike, the covariance grows by C / (C - 1).

If clusters inform unequally on a figure, fewer count. With d the part of a cluster in the figure's
variance under the model, n = (sum of d)^2 / sum of d^2 clusters count (Carter, Schnepel and
Steigerwald 2017), and the degrees of freedom are n - 1: C - 1 where all inform alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.models import Scores

_BLOCK: Final = 200_000  # numbers in a table, at a time: few enough for the cache
_MOST_TERMS: Final = 100  # of a power series; bounds what a cluster that decides alone can add
_NOTHING: Final = 1e-12


def sandwich(
    units: ClusteredBattles, scores: Scores, information: Floats, penalty: Floats | float = 0.0
) -> "Sandwich":
    """Take a fit's derivatives, of battles in any order, and the information, (k, k).

    penalty: (k,) of it the prior's. It counts as evidence of known variance: without it, an entrant
    that never lost would seem sure of a rating that is all prior.
    """
    order = np.argsort(units.unit, kind="stable")
    inverse = np.asarray(np.linalg.inv(information), dtype=np.float64)
    return Sandwich(units.take(order), scores.take(order), inverse, penalty)


@dataclass(frozen=True)
class Sandwich:
    """A fit of k parameters, as the covariance of figures made of them needs it.

    Attributes:
        units: The battles, ordered by cluster.
        scores: The derivatives of each battle's log-likelihood, and their information.
        inverse: (k, k) the inverse of the information, the prior's included.
        penalty: (k,) the prior's.
    """

    units: ClusteredBattles
    scores: Scores
    inverse: Floats
    penalty: Floats | float

    def spread_of(self, figures: Floats) -> tuple[Floats, Floats]:
        """Return the covariance, (m, m), and degrees of freedom, (m,), of figures.

        They are linear functions, (m, k), of the parameters.

        Where nothing but differences of strengths is determined, figures are made of these only.
        """
        response = figures @ self.inverse
        covariance = response @ self._meat @ response.T
        return np.asarray(covariance), self._freedom(response)

    def influences(self, figures: Floats) -> Floats:
        """Return the influence of each cluster on m figures, (n_clusters, m), bias-reduced."""
        response = (figures @ self.inverse).T
        return np.concatenate([block.bias_reduced() @ response for block in self._blocks()])

    @cached_property
    def _meat(self) -> Floats:
        """The sum over clusters of g g', (k, k), g being bias-reduced, with the prior's part."""
        products = np.diag(np.broadcast_to(self.penalty, len(self.inverse)))
        for block in self._blocks():
            g = block.bias_reduced()
            products = products + g.T @ (block.count[:, None] * g)
        return products

    def _freedom(self, response: Floats) -> Floats:
        """Return the degrees of freedom of m figures, (m,), by their response to g, (m, k)."""
        once, squares = np.zeros((2, len(response)))
        for block in self._blocks():
            of_cluster = np.add.reduceat(block.parts(response), block.starts)
            once += block.count @ of_cluster
            squares += block.count @ of_cluster**2
        with np.errstate(invalid="ignore", divide="ignore"):  # of a figure that is fixed
            return np.asarray(once**2 / squares - 1.0)

    def _blocks(self) -> Iterator["Sandwich"]:
        """Yield whole clusters, of about as many battles as make a table of k columns."""
        ends = np.append(self.starts[1:], len(self.units.unit))
        first, most = 0, max(1, _BLOCK // len(self.inverse))
        while first < len(self.units.unit):
            this, last = np.searchsorted(ends, (first, first + most), side="right")
            end = int(ends[max(this, last - 1)])
            chosen = slice(first, end)
            yield replace(self, units=self.units.take(chosen), scores=self.scores.take(chosen))
            first = end

    def bias_reduced(self) -> Floats:
        """Return the bias-reduced g of all clusters, (n_clusters, k), by a power series of J M.

        A direction that a cluster alone decides has the eigenvalue 1; there the series is cut off.
        """
        whole = term = self.scores.slope
        for n in range(1, _MOST_TERMS):
            term = self._informed(term) * ((2 * n - 1) / (2 * n))
            whole = whole + term
            if np.abs(term).max(initial=0.0) <= _NOTHING * np.abs(whole).max(initial=0.0):
                break
        return self._added_up(whole)

    def parts(self, response: Floats) -> Floats:
        """Return each battle's part in the variance of m figures, (n, m), if the model holds."""
        units = self.units
        along = [response.T[units.a] - response.T[units.b], *response.T[units.n_entrants :]]
        part = np.zeros((len(units.a), len(response)))
        for i, one in enumerate(along):
            for j, other in enumerate(along):
                part += self.scores.information[:, i, j, None] * one * other
        return part

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The first battle of each cluster."""
        return np.flatnonzero(np.diff(self.units.unit, prepend=-1))

    @property
    def count(self) -> NDArray[np.int64]:
        """How many clusters are like each, (n_clusters,)."""
        return self.units.count[self.units.unit[self.starts]]

    @cached_property
    def _parameters(self) -> NDArray[np.intp]:
        """The parameters of each battle, (n, 1 + few): a's and b's strength, then those of all."""
        units = self.units
        others = np.arange(units.n_entrants, len(self.inverse))
        return np.column_stack((units.a, units.b, np.tile(others, (len(units.a), 1))))

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """The places of these in a table of all clusters and parameters."""
        row = np.cumsum(np.diff(self.units.unit, prepend=-1) != 0) - 1
        return row[:, None] * len(self.inverse) + self._parameters

    @cached_property
    def _signs(self) -> Floats:
        """The derivatives of a battle's columns by its parameters, (few, 1 + few)."""
        each = np.eye(self._parameters.shape[1])
        return np.vstack((each[0] - each[1], each[2:]))

    def _added_up(self, slope: Floats) -> Floats:
        """Add up derivatives of battles, (n, few), by cluster: (n_clusters, k)."""
        shape = len(self.starts), len(self.inverse)
        each = (slope @ self._signs).ravel()
        flat = np.bincount(self._places.ravel(), each, minlength=shape[0] * shape[1])
        return np.reshape(flat.astype(np.float64, copy=False), shape)

    def _informed(self, slope: Floats) -> Floats:
        """Multiply what battles add up to in each cluster by J M, (n, few)."""
        if len(self.starts) == len(slope):  # one battle each
            return np.asarray((self._of_itself @ slope[:, :, None])[:, :, 0])
        moved = (self._added_up(slope) @ self.inverse).ravel()[self._places]
        along = moved @ self._signs.T
        return np.asarray((self.scores.information @ along[:, :, None])[:, :, 0])

    @cached_property
    def _of_itself(self) -> Floats:
        """J M as each battle alone has it, (n, few, few)."""
        own = self.inverse[self._parameters[:, :, None], self._parameters[:, None, :]]
        return np.asarray(self.scores.information @ (self._signs @ own @ self._signs.T))
