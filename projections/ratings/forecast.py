"""How sure ratings will be of more prompts, or by another design: projected from what was judged.

The outcomes of a pilot say how much of the spread is the pairs' own, and how much two pairs of one
prompt share that have an entrant in common: an answer that is better than its entrant's usual ones
wins all its battles. Both are pooled over entrants. Of any design they give the covariance of the
ratings, as the sandwich would estimate it. What the pilot's own sandwich says of each entrant, and
the model of the pilot's design does not, is taken over to every design.

How far a pair's two orders are apart says what is lost where one of them is asked; but not what
the slot gives, which is taken off the scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO, student_uncertainty
from projections.ratings.bradley_terry.rate import BradleyTerryRatings
from projections.tournament.designs import ONE_IN_BOTH

SURE: Final = 0.841621  # the normal quantile of 80 %: how often a forecast is to be enough
FEWEST_PROMPTS: Final = 20  # of a pilot, for a forecast
_STEPS: Final = 4  # the critical value changes little with the number of prompts


def prompts_needed(n_prompts: int, reach: float, goal: float) -> int:
    """Return on how many prompts a reach falls to a goal: it falls with the root of their number.

    Args:
        n_prompts: On which it is `reach`.
        reach: As of an interval.
        goal: Above 0.
    """
    return ceil(n_prompts * (reach / goal) ** 2)


@dataclass(frozen=True)
class Pilot:
    """What battles of a pilot say of the precision of other designs.

    Attributes:
        ratings: By the pilot, of all entrants, in one component.
        own: The variance of a pair's score by both orders, as a share of that of independent wins.
        of_order: Likewise, what one order's verdict varies by more; None: unknown, since no pair
            was judged in both.
        shared: The variance of an answer's own strength, in squared logits; None: unknown, since no
            two pairs of a prompt have an entrant in common.
        scale: (n,) each entrant's standard error, as a share of what the model says of it.
        n_met: (n,) on how many prompts each entrant met another.
    """

    ratings: BradleyTerryRatings
    own: float
    of_order: float | None
    shared: float | None
    scale: Floats
    n_met: NDArray[np.intp]

    @property
    def n_prompts(self) -> int:
        """On how many prompts some entrant met another, at most."""
        return int(self.n_met.max())

    def projected(self, meets: NDArray[np.bool_], n_prompts: float) -> BradleyTerryRatings:
        """Return the ratings with the uncertainty that a design would leave.

        Args:
            meets: (n_pattern, n, n) who meets whom on each of some prompts; symmetric.
            n_prompts: The number of prompts, on which that pattern is repeated.
        """
        usual, old = _chances(self.ratings), self.ratings
        more = n_prompts / len(meets)
        weight = usual * meets
        model = _covariance(weight, self.own * weight, self.shared or 0.0, old) / more
        covariance = model * np.outer(self.scale, self.scale)
        n_met = meets.any(axis=2).sum(axis=0) * more
        freedom = old.freedom * np.minimum.outer(n_met / self.n_met, n_met / self.n_met)
        uncertainty = student_uncertainty(
            old.entrants, old.rating, covariance, freedom, old.support, old.parameters
        )
        n_battles = np.rint(meets.sum(axis=(0, 2)) * more).astype(np.intp)
        return old.with_uncertainty(uncertainty, n_battles)

    def counterbalanced(self) -> "Pilot | None":
        """Return the same where most pairs are asked in one order; None: that is not known.

        A pair in one order has half the weight. So the mean weight is m = (1 + b) / 2, where b is
        the share of pairs in both, and a score's variance (own (1 + 3 b) + of_order (1 - b)) / 4.
        """
        if self.of_order is None:
            return None
        in_both = 1 / ONE_IN_BOTH
        squares = self.own * (1 + 3 * in_both) + self.of_order * (1 - in_both)
        return replace(self, own=squares / (1 + in_both) ** 2)

    def needed(self, meets: NDArray[np.bool_], target: float) -> int:
        """Return how many prompts bring the mean half-width of a design to a target."""
        n_prompts = self.n_prompts
        for _ in range(_STEPS):
            reach = half_widths(self.projected(meets, n_prompts)).mean()
            n_prompts = max(1, prompts_needed(n_prompts, float(reach), target))
        return n_prompts


def half_widths(ratings: BradleyTerryRatings) -> Floats:
    """Return half of each rating's interval, (n,)."""
    return np.asarray((ratings.upper - ratings.lower) / 2)


def pilot_of(battles: Battles, ratings: BradleyTerryRatings, apart: Floats) -> Pilot | None:
    """Return what battles say of other designs; None where some entrant has no interval.

    Args:
        battles: Of the pilot, with the mean score of the verdicts there are.
        ratings: By them.
        apart: (n_battles,) half of what a took more by the order that shows it first; NaN where
            there is one verdict.
    """
    if np.isnan(half_widths(ratings)).any() or len(ratings.components) > 1:
        return None
    usual, n = _chances(ratings), len(ratings.entrants)
    prompts, prompt = np.unique(battles.cluster, return_inverse=True)
    surprise, weight, square, alone = np.zeros((4, len(prompts), n, n))
    gap = ratings.rating[battles.a] - ratings.rating[battles.b]
    off = battles.weight * (battles.score - 1 / (1 + np.exp(-gap / ELO)))
    for one, other, sign in ((battles.a, battles.b, 1.0), (battles.b, battles.a, -1.0)):
        np.add.at(surprise, (prompt, one, other), sign * off)
        np.add.at(weight, (prompt, one, other), battles.weight)
        np.add.at(square, (prompt, one, other), battles.weight**2)
        np.add.at(alone, (prompt, one, other), battles.weight**2 * np.isnan(apart))
    weight, square, alone = weight * usual, square * usual, alone * usual
    chance = usual[battles.a, battles.b][~np.isnan(apart)].sum()
    gaps = apart[~np.isnan(apart)]
    in_one = float((gaps**2).sum() / chance) if chance else 0.0  # more of one verdict, slot and all
    own = max(float(((surprise**2).sum() - in_one * alone.sum()) / square.sum()), 0.0)
    common = _products(weight)
    shared = None if not common else float(np.clip(_products(surprise) / common, 0.0, 2 * own))
    model = _covariance(weight, own * square + in_one * alone, shared or 0.0, ratings)
    scale = np.sqrt(ratings.covariance.diagonal() / model.diagonal())
    of_order = float(((gaps - gaps.mean()) ** 2).sum() / chance) if chance else None
    return Pilot(ratings, own, of_order, shared, scale, (weight > 0).any(axis=2).sum(axis=0))


def _products(table: Floats) -> float:
    """Add up the products of two different pairs of a prompt that have an entrant in common."""
    return float((table.sum(axis=2) ** 2 - (table**2).sum(axis=2)).sum())


def _chances(ratings: BradleyTerryRatings) -> Floats:
    """Return p (1 - p) of each pair, (n, n); 0 on the diagonal."""
    gap = (ratings.rating[:, None] - ratings.rating) / ELO
    variances = 1 / (2 + np.exp(gap) + np.exp(-gap))
    np.fill_diagonal(variances, 0.0)
    return np.asarray(variances)


def _covariance(
    weight: Floats, variance: Floats, shared: float, ratings: BradleyTerryRatings
) -> Floats:
    """Return the covariance of ratings, (n, n), where pairs weigh and vary so on prompts.

    An answer's own strength moves all its battles of a prompt, by the prompt's Laplacian; what is
    left of a pair's variance is its own.
    """
    laplacians = _laplacian(weight)
    information = np.linalg.pinv(laplacians.sum(axis=0), hermitian=True)
    alone = np.maximum(variance - 2 * shared * weight**2, 0.0).sum(axis=0)
    meat = shared * np.einsum("pij,pkj->ik", laplacians, laplacians) + _laplacian(alone)
    response = ratings.scale().points @ information
    return np.asarray(response @ meat @ response.T)


def _laplacian(weight: Floats) -> Floats:
    """Return the Laplacian of weights between entrants, (..., n, n)."""
    n = weight.shape[-1]
    return np.asarray(weight.sum(axis=-1)[..., None] * np.eye(n) - weight)


def meetings(names: Sequence[str], pairs: Sequence[Sequence[tuple[str, str]]]) -> NDArray[np.bool_]:
    """Return who meets whom on prompts, (n_prompts, n, n), given the pairs of each."""
    places = {name: place for place, name in enumerate(names)}
    meets = np.zeros((len(pairs), len(names), len(names)), dtype=np.bool_)
    for prompt, those in enumerate(pairs):
        for one, other in those:
            meets[prompt, places[one], places[other]] = True
            meets[prompt, places[other], places[one]] = True
    return meets
