"""Fit strengths and style coefficients together, with their sandwich covariance."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import CannotRate
from projections.battles.soft_scores import sigma
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles
from projections.ratings.bradley_terry.models import TOO_FAR, Scores
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

    def _net(self, values: Floats) -> Floats:
        n, values = self.n_entrants, self.factor * values
        net = np.bincount(self.a, values, minlength=n) - np.bincount(self.b, values, minlength=n)
        return np.asarray(net, dtype=np.float64)


_EXACT: Final = 1e-6  # of log odds: what is missing after the last step is about its square
_MOST_STEPS: Final = 200  # no log odds go further than as many units


class Fit(NamedTuple):
    """The maximum of the likelihood: parameters, (K,), and the log odds of battles, (n,)."""

    parameters: Floats
    log_odds: Floats


class FitSpread(NamedTuple):
    """How a fit would vary: its sandwich, and the covariance of the derivatives, (K, K).

    Figures, (m, K), are linear functions of the parameters; of strengths each takes differences
    only.
    """

    fitted: Sandwich
    meat: Floats

    def covariance(self, figures: Floats) -> Floats:
        """Return the covariance of m figures, (m, m)."""
        response = figures @ self.fitted.inverse
        return np.asarray(response @ self.meat @ response.T)

    def freedom(self, figures: Floats) -> Floats:
        """Return the degrees of freedom of m figures, (m,)."""
        return self.fitted.freedom(figures @ self.fitted.inverse)


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

    def fit(self) -> Fit:
        """Maximise by Newton's method, changing log odds by at most 1 a step, so each step goes up.

        For that bound see projections/ratings/bradley_terry/likelihood.py (Bach 2010).
        """
        parameters, log_odds = np.zeros_like(self.penalty), np.zeros_like(self.units.score)
        for _ in range(_MOST_STEPS):
            step = self._step(parameters, log_odds)
            moved = self.design.log_odds(step)
            furthest = np.abs(moved).max()
            share = 1.0 / max(furthest, 1.0)
            parameters, log_odds = parameters + share * step, log_odds + share * moved
            if furthest < _EXACT:
                return Fit(parameters, log_odds)
        raise CannotRate(*TOO_FAR)

    def spread(self, fit: Fit) -> FitSpread:
        """Return how a fit would vary, by the sandwich.

        As in projections/ratings/bradley_terry/component.py, penalties count as evidence whose
        variance is known.
        """
        features = self.design.features
        weights = self.units.weight * sigma(fit.log_odds) * sigma(-fit.log_odds)
        rows = np.concatenate((np.ones((len(features), 1)), features), axis=1)
        scores = Scores.logistic(self._surprise(fit.log_odds), weights, rows)
        fitted = sandwich(self.units, scores, self._information(fit.log_odds))
        return FitSpread(fitted, fitted.meat() + np.diag(self.penalty))

    def _step(self, parameters: Floats, log_odds: Floats) -> Floats:
        gradient = self.design.transposed(self._surprise(log_odds)) - self.penalty * parameters
        try:
            return np.asarray(np.linalg.solve(self._information(log_odds), gradient))
        except np.linalg.LinAlgError as error:
            raise CannotRate(*TOO_FAR) from error

    def _surprise(self, log_odds: Floats) -> Floats:
        """Return a's score minus the expected one, times the weight, (n,)."""
        score = self.units.score
        return self.units.weight * (score * sigma(-log_odds) - (1.0 - score) * sigma(log_odds))

    def _information(self, log_odds: Floats) -> Floats:
        """Return the negative second derivatives, (K, K).

        The term added for held strengths makes the matrix invertible, and keeps their step 0.
        """
        weights = self.units.weight * sigma(log_odds) * sigma(-log_odds)
        information = self.design.gram(weights) + np.diag(self.penalty)
        information[self.held, self.held] += information.diagonal().mean()
        return information
