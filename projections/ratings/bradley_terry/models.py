"""Two models of who wins: Bradley and Terry's, and Davidson's, where a tie is an outcome.

Both are log-linear, with k parameters. The first are strengths: log odds, of which only the
differences matter.

Bradley-Terry: P(i beats j) = 1 / (1 + exp(theta_j - theta_i)) (Zermelo 1929; Bradley and Terry
1952). A tie is half a win each, a score s between 0 and 1 is a win by s and a loss by 1 - s, so
only the scores against each other count.

Davidson: i wins, j wins and they tie as pi_i : pi_j : nu sqrt(pi_i pi_j), where pi = exp(theta)
(Davidson 1970). So ties are likelier among equals, and how likely is estimated: log nu is the last
parameter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import TIE, CannotRate
from projections.intervals import Floats
from projections.ratings.bradley_terry.evidence import ClusteredBattles, strongly_connected

TOO_FAR: Final = (
    "the strengths are too far apart to be computed",
    "set a prior, or remove battles of extreme weight",
)
"""Why no model can be fitted, and the remedy."""


Tally: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp], Floats]
"""What battles add to the counts that a model is fitted to: cluster, place in the flattened counts,
and amount, (m,) each."""


Slopes: TypeAlias = tuple[Floats, Floats]
"""First derivatives of log-likelihoods by k parameters, (batch, k), and negative second ones."""

Derivatives: TypeAlias = Callable[[Floats], Slopes]  # of parameters, (batch, k)


class Scores(NamedTuple):
    """First derivatives of each battle's log-likelihood, and what the battle informs of.

    The columns are the strength of a, that of b having the opposite derivative, then the other
    parameters. slope: (n, few); information: (n, few, few), the expected product of two slopes.
    """

    slope: Floats
    information: Floats

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
        """Return what battles add to the counts: each side's score."""
        n, won, lost = self.n_entrants, units.weight * units.score, units.weight * (1 - units.score)
        place = np.concatenate((units.a * n + units.b, units.b * n + units.a))
        return np.tile(units.unit, 2), place, np.concatenate((won, lost))

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
            return gradient, information

        return slopes

    def scores(self, parameters: Floats, units: ClusteredBattles) -> Scores:
        """By the strength of a: its score minus the expected one, times the weight."""
        expected = 1.0 / (1.0 + np.exp(parameters[units.b] - parameters[units.a]))
        return Scores(
            slope=(units.weight * (units.score - expected))[:, None],
            information=(units.weight * expected * (1.0 - expected))[:, None, None],
        )


_NEVER: Final = -30.0  # as log nu: ties of one in 10^13


@dataclass(frozen=True)
class Davidson:
    """Davidson's model among some entrants.

    counts[0, i, j] is how often i beat j, counts[1, i, j] with i < j how often they tied.
    """

    n_entrants: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Two kinds of outcome: i beat j, and a tie."""
        return 2, self.n_entrants, self.n_entrants

    @property
    def n_parameters(self) -> int:
        """Strengths and log nu."""
        return self.n_entrants + 1

    def tally(self, units: ClusteredBattles) -> Tally:
        """Count wins and ties."""
        lost = units.score == 0
        kind = (units.score == TIE).astype(np.intp)
        first, second = np.where(lost, units.b, units.a), np.where(lost, units.a, units.b)
        place = np.ravel_multi_index((kind, first, second), self.shape)
        return units.unit, place, units.weight

    def has_fit(self, counts: Floats, *, prior: bool) -> NDArray[np.bool_]:
        """Say where strengths and nu are finite; nu is 0 without ties, as in Bradley and Terry."""
        wins = counts[:, 0] > 0
        ties = counts[:, 1] + counts[:, 1].swapaxes(1, 2) > 0
        none_tied = ~ties.any(axis=(1, 2))
        if prior:
            return np.logical_or(none_tied, wins.any(axis=(1, 2)))
        upset = (wins & wins.swapaxes(1, 2)).any(axis=(1, 2))
        fit = strongly_connected(wins | ties)
        unsure = np.flatnonzero(fit & ~none_tied & ~upset)
        fit[unsure] = _has_gaining_round(wins[unsure], ties[unsure])
        return fit

    def derivatives(self, counts: Floats) -> Derivatives:
        """Differentiate the sum of counts times log P.

        With W and T the counts, N = W + W' + T + T', and p, q, t the chances of a win, a loss and
        a tie: by theta_i once, sum over j of (W_ij - W_ji - N_ij (p - q)) / 2; by log nu, sum over
        pairs of T - N t. Twice, with the sign changed: - N_ij (p q + t (p + q) / 4) by theta_i
        and theta_j, and rows that sum to 0; by log nu, sum over pairs of N t (1 - t); by both,
        sum over j of N_ij t (q - p) / 2.
        """
        n = self.n_entrants
        diagonal = np.arange(n)
        lead = (counts[:, 0] - counts[:, 0].swapaxes(1, 2)).sum(axis=2)  # (batch, n)
        n_ties = counts[:, 1].sum(axis=(1, 2))  # (batch,)
        met = counts.sum(axis=1)
        met = met + met.swapaxes(1, 2)  # (batch, n, n)

        def slopes(parameters: Floats) -> Slopes:
            theta, log_nu = parameters[:, :n], parameters[:, n:]
            win, loss, tie = _chances(theta[:, :, None], theta[:, None, :], log_nu[:, :, None])
            tied, led = met * tie, win - loss
            gradient = np.empty_like(parameters)
            gradient[:, :n] = (lead - (met * led).sum(axis=2)) / 2
            gradient[:, n] = n_ties - tied.sum(axis=(1, 2)) / 2
            gradient[(n_ties == 0) & (log_nu[:, 0] < _NEVER), n] = 0.0  # far enough to nu = 0
            information = np.empty((len(parameters), n + 1, n + 1))
            between = information[:, :n, :n]
            between[:] = -met * win * loss - tied * (win + loss) / 4
            between[:, diagonal, diagonal] -= between.sum(axis=2)
            information[:, n, n] = (tied * (win + loss)).sum(axis=(1, 2)) / 2
            information[:, :n, n] = information[:, n, :n] = -(tied * led).sum(axis=2) / 2
            return gradient, information

        return slopes

    def scores(self, parameters: Floats, units: ClusteredBattles) -> Scores:
        """By the strength of a and by log nu: observed minus expected, times weight."""
        theta, log_nu = parameters[: self.n_entrants], parameters[self.n_entrants]
        win, loss, tie = _chances(theta[units.a], theta[units.b], log_nu)
        lead = 2 * units.score - 1 - (win - loss)
        tied = (units.score == TIE) - tie
        both = -tie * (win - loss) / 2
        rows = ((win * loss + tie * (win + loss) / 4, both), (both, tie * (win + loss)))
        return Scores(
            slope=units.weight[:, None] * np.column_stack((lead / 2, tied)),
            information=units.weight[:, None, None] * np.moveaxis(np.array(rows), 2, 0),
        )


PairModel: TypeAlias = BradleyTerry | Davidson
"""A model of who wins."""


def require_whole_outcomes(score: Floats) -> None:
    """Refuse scores other than wins, losses and ties, which Davidson's model does not have."""
    between = score[~np.isin(score, (0.0, TIE, 1.0))]
    if between.size:
        raise CannotRate(
            f"Davidson's model takes wins, losses and ties, not a score of {between[0]}",
            "count ties as half",
        )


def _has_gaining_round(wins: NDArray[np.bool_], ties: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say where a cycle of wins and ties has more wins than ties: (batch, n, n), ties symmetric.

    Without such a cycle, heights can be given to entrants so that each win leads down by at least
    one step and each tie by at most one, up or down. Along these heights strengths can be drawn
    apart, and ties made likelier in step, without end, nothing that happened becoming less likely.
    Heights are sought as Bellman and Ford seek shortest paths: if they still sink after n rounds,
    there are none.
    """
    step = np.where(wins, -1.0, np.where(ties, 1.0, np.inf))  # height[j] <= height[i] + step[i, j]
    height = np.zeros(wins.shape[:2])
    for _ in range(wins.shape[1]):
        before, height = height, np.minimum(height, (height[:, :, None] + step).min(axis=1))
    return np.asarray((height < before).any(axis=1))


def _chances(theta: Floats, other: Floats, log_nu: Floats | float) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of a win, a loss and a tie."""
    win, loss, tie = np.exp(theta), np.exp(other), np.exp(log_nu + (theta + other) / 2)
    total = win + loss + tie
    return win / total, loss / total, tie / total
