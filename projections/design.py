"""Log odds of battles as a linear function of parameters: strengths, and slopes of features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projections.resamples import Floats


@dataclass(frozen=True)
class Design:
    """A sparse matrix, one row a battle: 1 at a, -1 at b, then the features.

    There are K = n_entrants + n_features parameters.

    Attributes:
        n_entrants: How many strengths there are.
        a: (n,) the number of one entrant.
        b: (n,) that of the other.
        features: (n, n_features).
    """

    n_entrants: int
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    features: Floats

    def log_odds(self, parameters: Floats) -> Floats:
        """Return the matrix times parameters, (K,): the log odds of a against b, (n,)."""
        strengths, slopes = np.split(parameters, [self.n_entrants])
        return strengths[self.a] - strengths[self.b] + self.features @ slopes

    def transposed(self, values: Floats) -> Floats:
        """Return the transposed matrix times values, (n,): a gradient, (K,)."""
        return np.concatenate((self._net(values), self.features.T @ values))

    def gram(self, weights: Floats) -> Floats:
        """Return the sum over battles of w row' row, (K, K), given w, (n,)."""
        n, weighted = self.n_entrants, self.features * weights[:, None]
        met = np.bincount(self.a * n + self.b, weights, minlength=n * n).reshape(n, n)
        met = met + met.T
        crosswise = np.array([self._net(column) for column in weighted.T]).reshape(-1, n)
        return np.block(
            [
                [np.diag(met.sum(axis=1)) - met, crosswise.T],
                [crosswise, self.features.T @ weighted],
            ]
        )

    def _net(self, values: Floats) -> Floats:
        n = self.n_entrants
        net = np.bincount(self.a, values, minlength=n) - np.bincount(self.b, values, minlength=n)
        return np.asarray(net, dtype=np.float64)
