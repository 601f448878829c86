"""Fragility: how few prompts decide which of two entrants is ahead.

To leave out a prompt moves the gap between two strengths by about its influence, which the fit
gives for all prompts at once (Broderick, Giordano and Meager 2020; for rankings of language models
Huang et al. 2025, arXiv 2508.11847). Prompts are taken in order of their influence, as many as
should turn the gap; a fit without them, and one without all but the last, show that they do.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.ratings import BradleyTerryParameters
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.bradley_terry.component import ELO, precision_of
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.models import Scores
from projections.ratings.bradley_terry.overall import fitted
from projections.ratings.bradley_terry.rate import PointRatings, rate_points
from projections.ratings.bradley_terry.uncertainty import single_battles
from projections.results.ratings import FragilityRow

_CLOSE: Final = 1e-4  # of a strength: the square of it is what a fit misses
_EVEN: Final = 1e-6  # of a strength: a smaller gap is one of rounding
_AT_ONCE: Final = 2_000_000  # numbers in a table of gaps by prompts


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
    components = map(ratings.components.members, range(len(ratings.components)))
    return tuple(
        found
        for members in components
        if len(members) > 1 and not np.isnan(ratings.rating[members[0]])
        for found in _within(dimension, battles, ratings, members)
    )


def _within(
    dimension: str, battles: Battles, ratings: PointRatings, members: NDArray[np.intp]
) -> Iterator[FragilityRow]:
    """Yield the fragility of each gap of a component, (n,) entrants."""
    inside = np.isin(battles.a, members) & np.isin(battles.b, members)
    prompts = np.unique(battles.cluster[inside])
    refits = _Refits.of(battles.take(inside), ratings, members)
    neighbours = [*pairwise(np.argsort(-ratings.rating[members], kind="stable").tolist())]
    size = max(1, _AT_ONCE // len(prompts))
    for start in range(0, len(neighbours), size):
        for each in refits.settled(neighbours[start : start + size]):
            turned = each.turned
            yield FragilityRow(
                dimension,
                ratings.entrants[members[each.ahead]],
                ratings.entrants[members[each.behind]],
                gap=each.gap * ELO,
                n_decisive=None if turned is None else len(turned),
                n_prompts=len(prompts),
                decisive=None
                if turned is None
                else tuple(_name(battles.prompt_of(prompt)) for prompt in prompts[turned]),
            )


def _name(prompt: Hashable | None) -> str | None:
    return None if prompt is None else str(prompt)


@dataclass
class _Turning:
    """The search for how many of the most influential prompts turn a gap.

    Attributes:
        ahead, behind: The entrants.
        gap: Of their strengths, 0 or more.
        lead: (n,) the prompts of positive influence on the gap, the most influential first.
        reach: (n + 1,) what none to all of them should move it by.
        fewest: The fewest prompts known to turn the gap.
        most: The most known not to.
        tried: How many to leave out next.
    """

    ahead: int
    behind: int
    gap: float
    lead: NDArray[np.intp]
    reach: Floats
    fewest: int | None = field(init=False)
    most: int = 0
    tried: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin with as many as should be enough."""
        self.fewest = 0 if self.gap < _EVEN else None
        self.tried = self._enough_for(self.gap)

    @property
    def is_settled(self) -> bool:
        """Whether one prompt fewer does not turn the gap, or all do not."""
        if self.fewest is None:
            return self.most == len(self.lead)
        return self.fewest <= self.most + 1

    @property
    def turned(self) -> NDArray[np.intp] | None:
        """The fewest prompts found that turn the gap; None if none do."""
        return None if self.fewest is None else self.lead[: self.fewest]

    def learn(self, gap: float) -> None:
        """Take in what the gap is without those prompts, and choose how many to try next."""
        if gap < -_EVEN:
            self.fewest = self.tried
        else:
            self.most = self.tried
        ceiling = len(self.lead) if self.fewest is None else self.fewest - 1
        further = self._enough_for(self.reach[self.tried] + max(gap, -self.gap))
        self.tried = min(max(further, self.most + 1), ceiling)

    def _enough_for(self, gap: float) -> int:
        """Return how many prompts have influences that add up to more than a gap."""
        return min(int(np.searchsorted(self.reach, gap, side="right")), len(self.lead))


@dataclass(frozen=True)
class _Refits:
    """Fits of a component's battles without some of the prompts; fit: (k,) is with all of them."""

    battles: Battles
    parameters: BradleyTerryParameters
    members: NDArray[np.intp]
    likelihood: Likelihood
    fit: Floats

    @classmethod
    def of(cls, battles: Battles, ratings: PointRatings, members: NDArray[np.intp]) -> "_Refits":
        every = np.ones(len(battles), dtype=np.bool_)
        units = single_battles(battles, every).within(members)
        model, fit = fitted(ratings, members)
        likelihood = Likelihood(model, units, precision_of(ratings.parameters))
        return cls(battles, ratings.parameters, members, likelihood, fit)

    @cached_property
    def _scores(self) -> Scores:
        return self.likelihood.model.scores(self.fit, self.likelihood.units)

    @cached_property
    def _sensitivity(self) -> Floats:
        """The derivative of each parameter by each derivative of the log-likelihood, (k, k)."""
        return np.asarray(np.linalg.inv(self.likelihood.information(self.fit)), dtype=np.float64)

    def settled(self, neighbours: Sequence[tuple[int, int]]) -> list[_Turning]:
        """Search for each pair of neighbours, the one ahead first, until all are settled."""
        searches = [self._search(*pair) for pair in neighbours]
        while pending := [each for each in searches if not each.is_settled]:
            for each, gap in zip(pending, self._gaps(pending), strict=True):
                each.learn(gap)
        return searches

    def _search(self, ahead: int, behind: int) -> _Turning:
        """Begin a search."""
        influence = self._influences(self._sensitivity[ahead] - self._sensitivity[behind])
        positive = np.flatnonzero(influence > 0)
        lead = positive[np.argsort(-influence[positive], kind="stable")]
        reach = np.concatenate(([0.0], np.cumsum(influence[lead])))
        return _Turning(ahead, behind, float(self.fit[ahead] - self.fit[behind]), lead, reach)

    def _influences(self, response: Floats) -> Floats:
        """Return each prompt's influence on a figure, given what it answers to, (k,)."""
        units, slope = self.likelihood.units, self._scores.slope
        of_battles = slope[:, 0] * (response[units.a] - response[units.b])
        of_battles += slope[:, 1:] @ response[units.n_entrants :]
        return np.asarray(np.bincount(units.unit, of_battles, minlength=len(units.count)))

    def _gaps(self, searches: Sequence[_Turning]) -> Iterator[float]:
        """Yield the gap of each search without its prompts."""
        numbers = np.ones((len(searches), len(self.likelihood.units.count)))
        for row, each in zip(numbers, searches, strict=True):
            row[each.lead[: each.tried]] = 0.0
        counts = self.likelihood.counts(numbers)
        has_fit = self.likelihood.has_fit(counts)
        start = np.tile(self.fit, (has_fit.sum(), 1))
        found = self.likelihood.maximise(start, counts[has_fit], tolerance=_CLOSE)
        strengths = np.full((len(searches), len(self.fit)), np.nan)
        strengths[has_fit] = np.where(found.converged[:, None], found.parameters, np.nan)
        for each, row in zip(searches, strengths, strict=True):
            gap = float(row[each.ahead] - row[each.behind])
            yield self._gap_in_parts(each) if np.isnan(gap) else gap

    def _gap_in_parts(self, search: _Turning) -> float:
        """Return the gap where what is left has no fit as a whole.

        It is infinite if one is above the other, and minus infinity if they cannot be compared:
        then nothing shows any more that the first is ahead.
        """
        prompts = np.unique(self.battles.cluster)
        left_out = prompts[search.lead[: search.tried]]
        left = self.battles.take(~np.isin(self.battles.cluster, left_out))
        ahead, behind = self.members[search.ahead], self.members[search.behind]
        ratings = rate_points(left, self.parameters)
        label, above = ratings.components.label, ratings.components.above
        if label[ahead] == label[behind]:
            return float(ratings.rating[ahead] - ratings.rating[behind]) / ELO
        return np.inf if above[label[ahead], label[behind]] else -np.inf
