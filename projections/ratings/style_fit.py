"""Fit strengths and style coefficients together, with their sandwich covariance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import CannotRate
from projections.battles.soft_scores import sigma
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.likelihood import maximise
from projections.ratings.bradley_terry.models import TOO_FAR, Scores, Slopes
from projections.ratings.bradley_terry.sandwich import Sandwich, sandwich


@dataclass(frozen=True)
class Design:
    """A sparse matrix of K = n_entrants + n_features columns: 1 at a, -1 at b, then the features.

    a, b: (n,) numbers of each battle's entrants; features: (n, n_features); factor: (n,) stands in
    place of 1, where a difference of strengths counts more in some battles than in others.
    """

    n_entrants: int
    a: NDArray[np.intp]
    b: NDArray[np.intp]
    features: Floats
    factor: Floats | float = 1.0

    def log_odds(self, parameters: Floats) -> Floats:
        """Return the matrix times parameters, (K,): the log odds of a against b, (n,)."""
        strengths, slopes = np.split(parameters, [self.n_entrants])
        return self.factor * (strengths[self.a] - strengths[self.b]) + self.features @ slopes

    def transposed(self, values: Floats) -> Floats:
        """Return the transposed matrix times values, (n,): a gradient, (K,)."""
        return np.concatenate((self._net(values), self.features.T @ values))

    def gram(self, weights: Floats) -> Floats:
        """Return the sum over battles of w row' row, (K, K), given w, (n,)."""
        n, weighted = self.n_entrants, self.features * weights[:, None]
        of_strengths = weights * self.factor**2
        met = np.bincount(self.a * n + self.b, of_strengths, minlength=n * n).reshape(n, n)
        met = met + met.T
        crosswise = np.array([self._net(column) for column in weighted.T]).reshape(-1, n)
        return np.block(
            [
                [np.diag(met.sum(axis=1)) - met, crosswise.T],
                [crosswise, self.features.T @ weighted],
            ]
        )

    def scores(self, surprise: Floats, variance: Floats) -> Scores:
        """Return the derivatives of each battle's log-likelihood, by strength and features.

        surprise: (n,) score minus the expected one, times the weight; variance: (n,) of the score,
        times the weight.
        """
        factor = np.broadcast_to(self.factor, len(self.a))
        rows = np.column_stack((factor, self.features))
        products = rows[:, :, None] * rows[:, None, :]
        return Scores(surprise[:, None] * rows, variance[:, None, None] * products)

    def _net(self, values: Floats) -> Floats:
        n, values = self.n_entrants, self.factor * values
        net = np.bincount(self.a, values, minlength=n) - np.bincount(self.b, values, minlength=n)
        return np.asarray(net, dtype=np.float64)


@dataclass(frozen=True)
class AdjustedLikelihood:
    """The log-likelihood of battles, less penalty / 2 times the square of each parameter.

    penalty: (K,) 0 or more; more than 0 for betas. held: strengths that stay 0, one of each
    component, where there is no penalty on them and only differences are determined.
    """

    design: Design
    units: ClusteredBattles
    penalty: Floats
    held: NDArray[np.intp]

    def fit(self) -> Floats:
        """Return the parameters of highest likelihood, (K,)."""
        start = np.zeros((1, len(self.penalty)))
        try:
            [found] = maximise(lambda at: self._slopes(at[0]), start, self._span)
        except np.linalg.LinAlgError as error:
            raise CannotRate(*TOO_FAR) from error
        if np.isnan(found).any():
            raise CannotRate(*TOO_FAR)
        return np.asarray(found)

    def sandwich(self, parameters: Floats) -> Sandwich:
        """Return the fit as the covariance of figures needs it."""
        log_odds = self.design.log_odds(parameters)
        return sandwich(
            self.units,
            self.design.scores(self._surprise(log_odds), self._variance(log_odds)),
            self._information(log_odds),
            self.penalty,
        )

    def _span(self, step: Floats) -> Floats:
        return np.asarray(np.abs(self.design.log_odds(step[0])).max(keepdims=True))

    def _slopes(self, parameters: Floats) -> Slopes:
        log_odds = self.design.log_odds(parameters)
        gradient = self.design.transposed(self._surprise(log_odds)) - self.penalty * parameters
        return Slopes(gradient[None], self._information(log_odds)[None])

    def _surprise(self, log_odds: Floats) -> Floats:
        """Return a's score minus the expected one, times the weight, (n,)."""
        score = self.units.score
        return self.units.weight * (score * sigma(-log_odds) - (1.0 - score) * sigma(log_odds))

    def _variance(self, log_odds: Floats) -> Floats:
        """Return the variance of a's score, times the weight, (n,)."""
        return self.units.weight * sigma(log_odds) * sigma(-log_odds)

    def _information(self, log_odds: Floats) -> Floats:
        """Return the negative second derivatives, (K, K).

        The term added for held strengths makes the matrix invertible, and keeps their step 0.
        """
        information = self.design.gram(self._variance(log_odds)) + np.diag(self.penalty)
        information[self.held, self.held] += information.diagonal().mean()
        return information
