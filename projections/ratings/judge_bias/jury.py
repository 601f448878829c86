"""Judges of unequal skill, and judges that prefer models of their own family.

P(a beats b | judge) = sigma(skill_judge (theta_a - theta_b)), where one judge's skill is 1; a judge
of skill 0 guesses (Xu et al., ICML 2026; arXiv 2602.16610). Beside it stands, for a judge with
entrants of its own family, a bonus in log odds that they have before that judge alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.soft_scores import sigma
from projections.intervals import FEWEST_CLUSTERS, Floats
from projections.ratings.bradley_terry.component import ELO, MEAN_RATING
from projections.ratings.bradley_terry.evidence import ClusteredBattles, single_battles
from projections.ratings.bradley_terry.rate import rate_points
from projections.ratings.bradley_terry.sandwich import sandwich
from projections.ratings.judge_bias.figures import Bounded
from projections.ratings.judge_bias.pairs import JudgedPairs, Places
from projections.ratings.style_fit import Design
from projections.student import critical_value

_LEVEL: Final = 0.95
_EXACT: Final = 1e-6  # of log odds: what is missing after the last step is about its square
_MOST_STEPS: Final = 100
_SHARES: Final = 0.5 ** np.arange(30)  # of a step, tried until one does not lead down
_UNDETERMINED: Final = 1e-9  # an eigenvalue of information, diagonal 1, that is rounding


class JuryFit(NamedTuple):
    """Skills by judge, the first of which is 1 by decree, and bonuses, with their intervals."""

    skills: tuple[Bounded, ...]
    bonuses: tuple[Bounded, ...]


def fit_jury(pairs: JudgedPairs, own: Floats) -> JuryFit | None:
    """Fit strengths, skills and bonuses together, each order being a battle.

    Intervals are Student's by the bias-reduced sandwich, clustered by prompt.

    Args:
        pairs: Of all judges, each of whom has some.
        own: (n, n_bonuses) 1 where a alone has the bonus before the judge, -1 where b alone.

    Returns:
        None if the verdicts do not determine all of them. Those on two entrants, for example,
        cannot tell a bonus from skill.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    orders = pairs.orders()
    plain = rate_points(orders, BradleyTerryParameters())
    label = plain.components.label
    comparable = label[orders.a] == label[orders.b]
    units = single_battles(orders, comparable)
    if len(units.count) < FEWEST_CLUSTERS:
        return None
    jury = _Jury(
        units,
        judge=np.tile(pairs.judge, 2)[comparable],
        n_judges=len(pairs.judges),
        bonus=np.tile(own, (2, 1))[comparable],
        held=np.unique(label, return_index=True)[1],
    )
    return jury.fit(np.nan_to_num((plain.rating - MEAN_RATING) / ELO))


@dataclass(frozen=True)
class _Jury:
    """The likelihood of strengths, then of the skills of all judges but the first, then of bonuses.

    judge: (n,) of each battle; bonus: (n, n_bonuses); held: strengths that stay as they are.
    """

    units: ClusteredBattles
    judge: Places
    n_judges: int
    bonus: Floats
    held: Places

    def fit(self, strengths: Floats) -> JuryFit | None:
        """Find the maximum by Fisher's scoring from equal skills; None if it is not determined."""
        skills, bonuses = np.ones(self.n_judges - 1), np.zeros(self.bonus.shape[1])
        parameters = np.concatenate((strengths, skills, bonuses))
        for _ in range(_MOST_STEPS):
            design = self._design(parameters)
            log_odds = self._log_odds(parameters)
            information = self._information(design, log_odds)
            if not _is_determined(information):
                return None
            gradient = design.transposed(self._surprise(log_odds))
            step = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
            if np.abs(design.log_odds(step)).max() < _EXACT:
                return self._found(parameters, information, design)
            parameters = self._further(parameters, step)
        return None

    def _log_odds(self, parameters: Floats) -> Floats:
        """Return the log odds of a against b, (n,)."""
        strengths, skills, bonuses = self._parts(parameters)
        gap = strengths[self.units.a] - strengths[self.units.b]
        return np.asarray(skills[self.judge] * gap + self.bonus @ bonuses)

    def _parts(self, parameters: Floats) -> Sequence[Floats]:
        """Return strengths, the skills of all judges, and bonuses."""
        n = self.units.n_entrants
        strengths, skills, bonuses = np.split(parameters, [n, n + self.n_judges - 1])
        return strengths, np.concatenate(([1.0], skills)), bonuses

    def _design(self, parameters: Floats) -> Design:
        """Return the derivatives of the log odds."""
        strengths, skills, _ = self._parts(parameters)
        gap = strengths[self.units.a] - strengths[self.units.b]
        is_of = self.judge[:, None] == np.arange(1, self.n_judges)
        columns = np.column_stack((gap[:, None] * is_of, self.bonus))
        return Design(
            len(strengths), self.units.a, self.units.b, columns, factor=skills[self.judge]
        )

    def _surprise(self, log_odds: Floats) -> Floats:
        return self.units.weight * (self.units.score - sigma(log_odds))

    def _variance(self, log_odds: Floats) -> Floats:
        return self.units.weight * sigma(log_odds) * sigma(-log_odds)

    def _information(self, design: Design, log_odds: Floats) -> Floats:
        """Return the expected information; held strengths are made to look known."""
        information = design.gram(self._variance(log_odds))
        information[self.held, self.held] += information.diagonal().mean()
        return information

    def _further(self, parameters: Floats, step: Floats) -> Floats:
        """Take the step, or the first half, quarter, ... of it that leads up."""
        now = self._log_likelihood(parameters)
        ways = (parameters + share * step for share in _SHARES)
        return next((way for way in ways if self._log_likelihood(way) >= now), parameters)

    def _log_likelihood(self, parameters: Floats) -> float:
        log_odds, score = self._log_odds(parameters), self.units.score
        each = score * np.logaddexp(0.0, -log_odds) + (1 - score) * np.logaddexp(0.0, log_odds)
        return -float(self.units.weight @ each)

    def _found(self, parameters: Floats, information: Floats, design: Design) -> JuryFit:
        n, log_odds = self.units.n_entrants, self._log_odds(parameters)
        scores = design.scores(self._surprise(log_odds), self._variance(log_odds))
        fitted = sandwich(self.units, scores, information)
        covariance, freedom = fitted.spread_of(np.eye(len(parameters))[n:])
        margins = (critical_value(_LEVEL, freedom) * np.sqrt(covariance.diagonal())).tolist()
        values = parameters[n:].tolist()
        found = [
            Bounded(value, value - margin, value + margin)
            for value, margin in zip(values, margins, strict=True)
        ]
        others = self.n_judges - 1
        return JuryFit((Bounded(1.0, None, None), *found[:others]), tuple(found[others:]))


def _is_determined(information: Floats) -> bool:
    """Say whether no direction is without information but for rounding."""
    diagonal = information.diagonal()
    if not (diagonal > 0).all():
        return False
    scaled = information / np.sqrt(np.outer(diagonal, diagonal))
    return bool(np.linalg.eigvalsh(scaled)[0] > _UNDETERMINED)
