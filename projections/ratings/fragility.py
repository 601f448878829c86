"""Fragility: how few prompts decide which of two entrants is ahead.

To leave out a prompt moves the gap between two strengths by about its influence, which the fit
gives for all prompts at once (Broderick, Giordano and Meager 2020; for rankings of language models
Huang et al. 2025, arXiv 2508.11847). Prompts are taken in order of their influence, as many as
should turn the gap; a fit without them, and one without all but the last, show that they do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.rate import PointRatings, rate_points
from projections.results.ratings import FragilityRow

_CLOSE: Final = 1e-4  # of a strength: the square of it is what a fit misses
_EVEN: Final = 1e-6  # of a strength: a smaller gap is one of rounding


def fragility(
    dimension: str, battles: Battles, parameters: BradleyTerryParameters
) -> tuple[FragilityRow, ...]:
    """Find the prompts that decide each gap between neighbours in the ratings, best first.

    The decisive ones are the fewest found without which the entrant behind is ahead; none if the
    gap is 0.

    Args:
        dimension: Or the imported set.
        battles: Their clusters are the prompts; a battle without one counts as a prompt.
        parameters: Of the ratings; anchor and intervals do not matter.

    Raises:
        CannotRate: As for `bradley_terry.rate.rate`.
    """
    ratings = rate_points(battles, replace(parameters, anchor=None))
    return tuple(
        fragility_row
        for members in ratings.rated_groups()
        for fragility_row in _within(dimension, battles, ratings, members)
    )


def _within(
    dimension: str, battles: Battles, ratings: PointRatings, members: NDArray[np.intp]
) -> Iterator[FragilityRow]:
    """Yield the fragility of each gap of a component, (n,) entrants."""
    likelihood, fit, inside = ratings.fitted(battles, members)
    refits = _Refits(battles.take(inside), ratings.parameters, members, likelihood, fit)
    prompts = [battles.prompt_of(prompt) for prompt in np.unique(battles.cluster[inside])]
    names = [None if prompt is None else str(prompt) for prompt in prompts]
    best_first = np.argsort(-ratings.rating[members], kind="stable").tolist()
    for ahead, behind in pairwise(best_first):
        turned = _decisive(refits, ahead, behind)
        yield FragilityRow(
            dimension,
            ratings.entrants[members[ahead]],
            ratings.entrants[members[behind]],
            gap=refits.gap(ahead, behind) * ELO,
            n_decisive=None if turned is None else len(turned),
            n_prompts=len(prompts),
            decisive=None if turned is None else tuple(names[prompt] for prompt in turned),
        )


def _decisive(refits: "_Refits", ahead: int, behind: int) -> NDArray[np.intp] | None:
    """Return the fewest prompts found that turn a gap; None if none do."""
    gap = refits.gap(ahead, behind)
    influence = refits.influences(ahead, behind)
    positive = np.flatnonzero(influence > 0)
    lead = positive[np.argsort(-influence[positive], kind="stable")]
    reach = np.concatenate(([0.0], np.cumsum(influence[lead])))

    def enough_for(gap: float) -> int:
        """Return how many prompts have influences that add up to more than a gap."""
        return min(int(np.searchsorted(reach, gap, side="right")), len(lead))

    fewest = 0 if gap < _EVEN else None  # known to turn it
    most, tried = 0, enough_for(gap)  # the most known not to
    while most < len(lead) if fewest is None else most + 1 < fewest:
        left = refits.gap_without(lead[:tried], ahead, behind)
        if left < -_EVEN:
            fewest = tried
        else:
            most = tried
        ceiling = len(lead) if fewest is None else fewest - 1
        further = enough_for(reach[tried] + max(left, -gap))
        tried = min(max(further, most + 1), ceiling)
    return None if fewest is None else lead[:fewest]


@dataclass(frozen=True)
class _Refits:
    """Fits of a component's battles without some of the prompts; fit: (k,) is with all of them."""

    battles: Battles
    parameters: BradleyTerryParameters
    members: NDArray[np.intp]
    likelihood: Likelihood
    fit: Floats

    @cached_property
    def _slopes_and_sensitivity(self) -> tuple[Floats, Floats]:
        """Derivatives of battles, (n, few), and of parameters by these when added up, (k, k)."""
        slope = self.likelihood.model.scores(self.fit, self.likelihood.units).slope
        return slope, np.asarray(np.linalg.inv(self.likelihood.information(self.fit)))

    def gap(self, ahead: int, behind: int) -> float:
        """Return the gap of two strengths, 0 or more."""
        return float(self.fit[ahead] - self.fit[behind])

    def influences(self, ahead: int, behind: int) -> Floats:
        """Return each prompt's influence on a gap, (n_prompts,)."""
        units, (slope, sensitivity) = self.likelihood.units, self._slopes_and_sensitivity
        response = sensitivity[ahead] - sensitivity[behind]
        of_battles = slope[:, 0] * (response[units.a] - response[units.b])
        of_battles += slope[:, 1:] @ response[units.n_entrants :]
        return np.asarray(np.bincount(units.unit, of_battles, minlength=len(units.count)))

    def gap_without(self, left_out: NDArray[np.intp], ahead: int, behind: int) -> float:
        """Return a gap without some prompts."""
        numbers = np.ones((1, len(self.likelihood.units.count)))
        numbers[0, left_out] = 0.0
        [found] = self.likelihood.refitted(numbers, self.fit, tolerance=_CLOSE)
        gap = float(found[ahead] - found[behind])
        return self._gap_in_parts(left_out, ahead, behind) if np.isnan(gap) else gap

    def _gap_in_parts(self, left_out: NDArray[np.intp], ahead: int, behind: int) -> float:
        """Return the gap where what is left has no fit as a whole.

        It is infinite if one is above the other, and minus infinity if they cannot be compared:
        then nothing shows any more that the first is ahead.
        """
        without = np.unique(self.battles.cluster)[left_out]
        left = self.battles.take(~np.isin(self.battles.cluster, without))
        first, second = self.members[ahead], self.members[behind]
        ratings = rate_points(left, self.parameters)
        label, above = ratings.components.label, ratings.components.above
        if label[first] == label[second]:
            return float(ratings.rating[first] - ratings.rating[second]) / ELO
        return np.inf if above[label[first], label[second]] else -np.inf
