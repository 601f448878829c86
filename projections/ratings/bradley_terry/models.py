"""The Bradley-Terry model of battles, and what it has in common with Davidson's.

Both are log-linear models of who wins, with k parameters. The first are strengths: log odds, of
which only the differences matter.

P(i beats j) = 1 / (1 + exp(theta_j - theta_i)) (Zermelo 1929; Bradley and Terry 1952). A tie is
half a win each, a score s between 0 and 1 is a win by s and a loss by 1 - s, so only the scores
against each other count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles, strongly_connected

TOO_FAR: Final = (
    "the strengths are too far apart to be computed",
    "set a prior, or remove battles of extreme weight",
)
"""Why no model can be fitted, and the remedy."""


class Tally(NamedTuple):
    """The terms that battles add to the counts that a model is fitted to.

    unit: (m,) the cluster; place: (m,) the index in the flattened counts; amount: (m,).
    """

    unit: NDArray[np.intp]
    place: NDArray[np.intp]
    amount: Floats


class Slopes(NamedTuple):
    """First and second derivatives of log-likelihoods by k parameters.

    gradient: (batch, k); information: (batch, k, k), the negative second derivatives.
    """

    gradient: Floats
    information: Floats


Derivatives: TypeAlias = Callable[[Floats], Slopes]  # of parameters, (batch, k)


class Scores(NamedTuple):
    """First derivatives of each battle's log-likelihood, and what the battle informs of.

    The columns are the strength of a, that of b having the opposite derivative, then the other
    parameters. slope: (n, few); information: (n, few, few), the expected product of two slopes.
    """

    slope: Floats
    information: Floats

    @classmethod
    def logistic(cls, surprise: Floats, variance: Floats, rows: Floats) -> "Scores":
        """Return those of a logistic model.

        Args:
            surprise: (n,) score minus the expected one, times the weight.
            variance: (n,) of the score, times the weight.
            rows: (n, few) derivatives of the log odds.
        """
        products = rows[:, :, None] * rows[:, None, :]
        return cls(surprise[:, None] * rows, variance[:, None, None] * products)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp] | slice) -> "Scores":
        """Select battles."""
        return Scores(self.slope[chosen], self.information[chosen])


@dataclass(frozen=True)
class BradleyTerry:
    """The Bradley-Terry model; counts[0, i, j] is i's total score against j."""

    n_entrants: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """How counts are laid out: one kind of outcome, the score of i against j."""
        return 1, self.n_entrants, self.n_entrants

    @property
    def n_parameters(self) -> int:
        """k: strengths only."""
        return self.n_entrants

    def tally(self, units: ClusteredBattles) -> Tally:
        """Return the terms that battles add to the counts: each side's score above 0."""
        won, lost = units.score > 0, units.score < 1
        forth, back = units.a * self.n_entrants + units.b, units.b * self.n_entrants + units.a
        return Tally(
            unit=np.concatenate((units.unit[won], units.unit[lost])),
            place=np.concatenate((forth[won], back[lost])),
            amount=np.concatenate(
                ((units.weight * units.score)[won], (units.weight * (1.0 - units.score))[lost])
            ),
        )

    def has_fit(self, counts: Floats, *, prior: bool) -> NDArray[np.bool_]:
        """Say for which counts the strengths of highest likelihood are finite, (batch,).

        For those by which everybody scored against everybody, at least through others (Ford 1957).
        """
        if prior:
            return np.ones(len(counts), dtype=np.bool_)
        return strongly_connected(counts[:, 0] > 0)

    def derivatives(self, counts: Floats) -> Derivatives:
        """Differentiate the sum of W_ij log p_ij, W being the counts and p_ij = P(i beats j).

        With N = W + W': by theta_i once, sum over j of W_ij - N_ij p_ij. Twice, with the sign
        changed: - N_ij p_ij p_ji by theta_i and theta_j, and rows that sum to 0.
        """
        taken = counts[:, 0].sum(axis=2)  # (batch, n)
        met = counts[:, 0] + counts[:, 0].swapaxes(1, 2)  # (batch, n, n)
        diagonal = np.arange(self.n_entrants)

        def slopes(parameters: Floats) -> Slopes:
            odds = np.exp(parameters)
            total = odds[:, :, None] + odds[:, None, :]
            share = met / total  # N_ij p_ij, divided by the odds of i
            gradient = taken - odds * share.sum(axis=2)
            information = share
            information /= total
            information *= -odds[:, :, None]
            information *= odds[:, None, :]
            information[:, diagonal, diagonal] -= information.sum(axis=2)
            return Slopes(gradient, information)

        return slopes

    def scores(self, parameters: Floats, units: ClusteredBattles) -> Scores:
        """By the strength of a: its score minus the expected one, times the weight."""
        expected = 1.0 / (1.0 + np.exp(parameters[units.b] - parameters[units.a]))
        return Scores(
            slope=(units.weight * (units.score - expected))[:, None],
            information=(units.weight * expected * (1.0 - expected))[:, None, None],
        )
