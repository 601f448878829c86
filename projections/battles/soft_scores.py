"""What a took by a judge's marks for both sides, and how steeply to read marks.

A soft score is sigma(T (mark of a - mark of b)); JudgeArena's preference is what b took, 1 less
it. T, called the temperature there although more of it is steeper, can be calibrated: so that
soft scores tell best whom people preferred. Bradley-Terry ratings of soft scores are what is
called soft Elo there.
"""

from math import nan
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledger.errors import TourneyError
from projections.battles.columns import TIE, Battles
from projections.intervals import Floats


def sigma(log_odds: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), as exact where it is nearly 0 as where it is not.

    sigma(-x) is what is left to 1, as exact.
    """
    return np.exp(np.minimum(log_odds, 0.0)) / (1.0 + np.exp(-np.abs(log_odds)))


TEMPERATURE: Final = 0.3  # JudgeArena's, for marks from 0 to 10
FEWEST_PAIRS: Final = 10  # to calibrate by, as there

_SETTLED: Final = 1e-9  # of the temperature; what is left is about the square of it
_MOST_STEPS: Final = 200  # margins of which one is 1e-17 of another settle in about 50


class CannotCalibrate(TourneyError):
    """Human battles do not tell how steeply a judge's marks are to be read."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot calibrate the temperature: {why}; {remedy}")
        self.why, self.remedy = why, remedy


class Temperature(NamedTuple):
    """A calibrated temperature; below 0 if people tend to prefer what the judge marks down.

    error: standard, clustered by prompt, NaN if there is one prompt only; n_pairs: battles that
    people decided; n_ties: those that were skipped; n_prompts: of the decided ones.
    """

    value: float
    error: float
    n_pairs: int
    n_ties: int
    n_prompts: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return the bounds of an interval that holds the true one as often as its level says."""
        margin = NormalDist().inv_cdf((1 + level) / 2) * self.error
        return self.value - margin, self.value + margin


class _Pairs(NamedTuple):
    """Decided battles, (n,) each; margin is the mark of a less that of b."""

    margin: Floats
    score: Floats
    weight: Floats
    prompt: NDArray[np.intp]


def soft_scores(
    marks_a: Floats | float, marks_b: Floats | float, *, temperature: float = TEMPERATURE
) -> Floats:
    """Return what a took by each pair of marks, in [0, 1], in the shape of the marks."""
    return sigma(temperature * (np.asarray(marks_a, dtype=np.float64) - marks_b))


def margin_of(pref: Floats, *, made_at: float) -> Floats:
    """Return by how much the mark of a was above that of b, of which preferences were made.

    Args:
        pref: How probably b is better, in [0, 1]; infinite margins make 0 and 1.
        made_at: The temperature that it was made at.
    """
    with np.errstate(divide="ignore"):
        log_odds: Floats = np.log1p(-pref) - np.log(pref)
    return log_odds / made_at


def calibrate(battles: Battles, margin: Floats) -> Temperature:
    """Find the temperature by which a judge's marks tell best whom people preferred.

    T = argmin sum of w log(1 + exp(-T (2 y - 1) margin)) over decided battles, where y is 1 if
    people preferred a. Ties are skipped: they would only make T small. The standard error is the
    sandwich's, right even where sigma is not quite the shape.

    Args:
        battles: What people said.
        margin: (n,) the judge's mark of a less that of b.

    Raises:
        CannotCalibrate: Fewer than 10 battles are decided, or no finite T is best, because people
            always preferred what the judge marked up, or never did; or none is found, because
            some margins are next to nothing beside others.
        ValueError: The margins are not finite, or not one a battle.
    """
    if margin.shape != battles.score.shape or not np.isfinite(margin).all():
        raise ValueError("margins are finite numbers, one for each battle")
    pairs = _decided(battles, margin)
    n_pairs = len(pairs.margin)
    if n_pairs < FEWEST_PAIRS:
        raise CannotCalibrate(
            f"people decided {n_pairs} of the battles ({FEWEST_PAIRS} needed)",
            f"judge more pairs that people decided, or keep {TEMPERATURE}",
        )
    _require_finite_fit(pairs)
    value = _fit(pairs)
    n_prompts = len(np.unique(pairs.prompt))
    return Temperature(value, _error(pairs, value), n_pairs, len(battles) - n_pairs, n_prompts)


def log_likelihood(battles: Battles, margin: Floats, *, temperature: float) -> float:
    """Return how well marks tell whom people preferred: 0 is always and surely.

    The sum over decided battles of w log sigma(T (2 y - 1) margin), as `calibrate` has it.
    """
    pairs = _decided(battles, margin)
    towards = temperature * (2 * pairs.score - 1) * pairs.margin
    return -float(pairs.weight @ np.logaddexp(0.0, -towards))


def _decided(battles: Battles, margin: Floats) -> _Pairs:
    decided = battles.score != TIE
    columns = (margin, battles.score, battles.weight, battles.cluster)
    return _Pairs(*(column[decided] for column in columns))


def _require_finite_fit(pairs: _Pairs) -> None:
    """Refuse battles by which T would run to infinity, or could be anything."""
    up, down = np.maximum(pairs.margin, 0), np.maximum(-pairs.margin, 0)
    agreed = (pairs.score * up + (1 - pairs.score) * down).any()
    differed = (pairs.score * down + (1 - pairs.score) * up).any()
    match bool(agreed), bool(differed):
        case True, False:
            why = "people always preferred what the judge scored higher, so it has no upper limit"
        case False, True:
            why = "people never preferred what the judge scored higher, so it has no lower limit"
        case False, False:
            why = "the judge gave both sides the same score in every battle that people decided"
        case _:
            return
    raise CannotCalibrate(why, f"judge more pairs that people decided, or keep {TEMPERATURE}")


def _fit(pairs: _Pairs) -> float:
    """Minimise by Newton's method, which needs no safeguard here.

    The second derivative falls with |T|, so that from 0 on no step goes past the minimum.

    Raises:
        CannotCalibrate: It does not settle.
    """
    value, widest = 0.0, float(np.abs(pairs.margin).max())
    for _ in range(_MOST_STEPS):
        step = float(_slopes(pairs, value).sum()) / _curvature(pairs, value)
        value += step
        if abs(step) * widest <= _SETTLED * (1 + abs(value) * widest):
            return value
    raise CannotCalibrate(
        f"no convergence after {_MOST_STEPS} steps: some score differences are tiny beside others",
        f"leave those battles out, or keep {TEMPERATURE}",
    )


def _error(pairs: _Pairs, value: float) -> float:
    _, unit = np.unique(pairs.prompt, return_inverse=True)
    by_prompt = np.bincount(unit, _slopes(pairs, value))
    if len(by_prompt) == 1:
        return nan
    meat = by_prompt @ by_prompt * len(by_prompt) / (len(by_prompt) - 1)
    return float(np.sqrt(meat)) / _curvature(pairs, value)


def _slopes(pairs: _Pairs, value: float) -> Floats:
    """Return each pair's derivative of the log-likelihood by T, w margin (score - sigma)."""
    log_odds = value * pairs.margin
    surprise = pairs.score * sigma(-log_odds) - (1 - pairs.score) * sigma(log_odds)
    return pairs.weight * pairs.margin * surprise


def _curvature(pairs: _Pairs, value: float) -> float:
    """Return the sum over pairs of w margin^2 sigma (1 - sigma)."""
    log_odds = value * pairs.margin
    return float(np.sum(pairs.weight * pairs.margin**2 * sigma(log_odds) * sigma(-log_odds)))
