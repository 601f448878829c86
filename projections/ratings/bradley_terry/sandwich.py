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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.models import Scores

_BLOCK: Final = 200_000  # numbers in a table, at a time: few enough for the cache
_MOST_TERMS: Final = 100  # of a power series; bounds what a cluster that decides alone can add
_NOTHING: Final = 1e-9


def sandwich(units: ClusteredBattles, scores: Scores, information: Floats) -> "Sandwich":
    """Take a fit's derivatives, of battles in any order, and the information, (k, k)."""
    order = np.argsort(units.unit, kind="stable")
    return Sandwich(
        units.take(order),
        scores.take(order),
        np.asarray(np.linalg.inv(information), dtype=np.float64),
    )


@dataclass(frozen=True)
class Sandwich:
    """A fit of k parameters, as the covariance of figures made of them needs it.

    Attributes:
        units: The battles, ordered by cluster.
        scores: The derivatives of each battle's log-likelihood, and their information.
        inverse: (k, k) the inverse of the information, the prior's included.
    """

    units: ClusteredBattles
    scores: Scores
    inverse: Floats

    def meat(self) -> Floats:
        """Return the sum over clusters of g g', (k, k), g being bias-reduced."""
        products = np.zeros_like(self.inverse)
        for block in self._blocks(len(self.inverse)):
            g = block.bias_reduced()
            products += g.T @ (block.count[:, None] * g)
        return products

    def tables(self) -> Iterator[Floats]:
        """Yield the bias-reduced g of some clusters at a time, (some, k), in their order."""
        for block in self._blocks(len(self.inverse)):
            yield block.bias_reduced()

    def bias_reduced(self) -> Floats:
        """Return the bias-reduced g of all clusters, (n_clusters, k)."""
        return _inverse_root(self.spread(self.scores.slope), self.informed)

    def freedom(self, response: Floats) -> Floats:
        """Return the degrees of freedom of m figures, (m,).

        Args:
            response: (m, k) the derivative of each by each derivative of the log-likelihood.
        """
        once, squares = np.zeros((2, len(response)))
        for each in self._blocks(len(response)):
            part = each.parts(response)
            of_cluster = np.add.reduceat(part, each.starts)
            once += each.count @ of_cluster
            squares += each.count @ of_cluster**2
        with np.errstate(invalid="ignore", divide="ignore"):  # of a figure that is fixed
            return np.asarray(once**2 / squares - 1.0)

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
    def row(self) -> NDArray[np.intp]:
        """The place of each battle's cluster among those that are here."""
        return np.cumsum(np.diff(self.units.unit, prepend=-1) != 0) - 1

    def _blocks(self, width: int) -> Iterator["Sandwich"]:
        """Yield whole clusters, of about as many battles as make a table of that width."""
        ends = np.append(self.starts[1:], len(self.units.unit))
        first, most = 0, max(1, _BLOCK // width)
        while first < len(self.units.unit):
            this, last = np.searchsorted(ends, (first, first + most), side="right")
            end = int(ends[max(this, last - 1)])
            chosen = slice(first, end)
            yield Sandwich(self.units.take(chosen), self.scores.take(chosen), self.inverse)
            first = end

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """Return the parameters of each battle: a's and b's strength, then those of all."""
        units = self.units
        others = np.arange(units.n_entrants, len(self.inverse))
        return np.column_stack((units.a, units.b, np.tile(others, (len(units.a), 1))))

    def spread(self, slope: Floats) -> Floats:
        """Add up derivatives of battles, (n, few), by cluster: (n_clusters, k)."""
        k, n_clusters = len(self.inverse), len(self.starts)
        place = self.row[:, None] * k + self.columns
        flat = np.bincount(place.ravel(), _both(slope).ravel(), minlength=n_clusters * k)
        return np.reshape(flat.astype(np.float64, copy=False), (n_clusters, k))

    def informed(self, table: Floats) -> Floats:
        """Multiply the row of each cluster by J M."""
        moved = table @ self.inverse
        along = _apart(moved[self.row[:, None], self.columns])
        return self.spread((self.scores.information @ along[:, :, None])[:, :, 0])


def _apart(values: Floats) -> Floats:
    """Return what belongs to a minus what belongs to b, then the rest: (n, 2 + few - 1, ...)."""
    return np.concatenate((values[:, :1] - values[:, 1:2], values[:, 2:]), axis=1)


def _both(slope: Floats) -> Floats:
    """Return derivatives by a's strength, by b's, and by the rest."""
    return np.concatenate((slope[:, :1], -slope[:, :1], slope[:, 1:]), axis=1)


def _inverse_root(vectors: Floats, informed: Callable[[Floats], Floats]) -> Floats:
    """Return (I - J M)^(-1/2) g by its power series, for each row g, given how to multiply by J M.

    A direction that a cluster alone decides has the eigenvalue 1; there the series is cut off.
    """
    whole, term = vectors, vectors
    for n in range(1, _MOST_TERMS):
        term = informed(term) * ((2 * n - 1) / (2 * n))
        whole = whole + term
        if not (np.abs(term) > _NOTHING * np.abs(whole).max(initial=0.0)).any():
            break
    return whole
